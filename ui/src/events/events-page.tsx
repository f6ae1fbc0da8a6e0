/** What happens, as it happens: the newest events since this tab was opened. Topic and words are in the address. */
import { useState } from 'react';
import { Choice } from '../kit/choice.tsx';
import { Empty } from '../kit/empty.tsx';
import { SearchField } from '../kit/search-field.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import type { LiveEvent } from '../live/event.ts';
import { kept } from '../live/feed.ts';
import { useFeed } from '../live/live.tsx';
import './events.css';
import { EventsTable } from './events-table.tsx';

const topics = [
  { value: '', label: 'All' },
  { value: 'millrace_runs', label: 'Runs' },
  { value: 'millrace_jobs', label: 'Jobs' },
  { value: 'millrace_projects', label: 'Projects' },
] as const;

export function EventsPage() {
  useTitle('Events');
  const [topic, setTopic] = useUrlState('topic');
  const [question, ask] = useUrlState('q');
  const feed = useFeed();
  const [held, setHeld] = useState<readonly LiveEvent[]>();
  const events = held ?? feed.events;
  const found = events.filter((event) => (topic === '' || event.topic === topic) && holds(event, question));
  return (
    <>
      <header className="page-head">
        <h1>Events</h1>
        <p className="page-count">{found.length === kept ? `newest ${kept}` : found.length}</p>
        <SearchField label="Find in events" value={question} change={ask} />
      </header>
      <div className="bar">
        <Choice label="Topic" options={topics} value={topic} change={setTopic} />
        <button
          type="button"
          className="button"
          aria-pressed={held !== undefined}
          onClick={() => setHeld(held === undefined ? feed.events : undefined)}
        >
          {held === undefined ? 'Hold' : 'Go on'}
        </button>
      </div>
      {found.length > 0 ? <EventsTable events={found} /> : <Nothing anyAtAll={events.length > 0} />}
    </>
  );
}

function holds(event: LiveEvent, question: string): boolean {
  if (question === '') return true;
  return JSON.stringify(event).toLowerCase().includes(question.toLowerCase());
}

function Nothing({ anyAtAll }: { readonly anyAtAll: boolean }) {
  if (anyAtAll) return <Empty title="No event matches" />;
  return (
    <Empty title="Listening">
      <p>Nothing has happened since this tab was opened. Events appear here the moment they are written.</p>
    </Empty>
  );
}
