/** All subscribers: state with its reason, health, exact lag and the next attempt, and charts of their lag. The address has the filters. */
import { Link } from 'wouter';
import { Answer } from '../kit/answer.tsx';
import { Choice } from '../kit/choice.tsx';
import { Command } from '../kit/command.tsx';
import { Empty } from '../kit/empty.tsx';
import { SearchField } from '../kit/search-field.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import { Age, Due } from '../time/times.tsx';
import { BusHead } from './bus-head.tsx';
import { ChartSpan, useChartSpan } from './chart-span.tsx';
import { LagCharts } from './lag-charts.tsx';
import { Health, standingOf, SubscriberState } from './subscriber-state.tsx';
import { type Subscriber, useSubscribers } from './use-bus.ts';

const choices = [
  { value: 'all', label: 'All' },
  { value: 'behind', label: 'Behind' },
  { value: 'failing', label: 'Failing' },
  { value: 'stopped', label: 'Stopped' },
] as const;
type Show = (typeof choices)[number]['value'];

const fits: Readonly<Record<Show, (subscriber: Subscriber) => boolean>> = {
  all: () => true,
  behind: ({ events }) => events.queued > 0,
  failing: (subscriber) => standingOf(subscriber)[1] === 'failing',
  stopped: ({ state }) => state !== 'active',
};

export default function SubscribersPage() {
  useTitle('Subscribers');
  const subscribers = useSubscribers();
  const [question, ask] = useUrlState('q');
  return (
    <>
      <BusHead>
        <SearchField label="Find a subscriber" value={question} change={ask} />
      </BusHead>
      <Answer of={subscribers} what="Reading subscribers">
        {(all) => (all.length === 0 ? <NoSubscribers /> : <Found all={all} question={question} />)}
      </Answer>
    </>
  );
}

function Found({ all, question }: { readonly all: readonly Subscriber[]; readonly question: string }) {
  const [asked, choose] = useUrlState('show', 'all');
  const show = choices.find(({ value }) => value === asked)?.value ?? 'all';
  const q = question.trim().toLowerCase();
  const shown = all.filter(
    (subscriber) =>
      fits[show](subscriber) && [subscriber.subscriber, ...subscriber.topics].some((text) => text.includes(q)),
  );
  const queued = all.reduce((sum, { events }) => sum + events.queued, 0);
  return (
    <>
      <div className="bar bus-filters">
        <ChartSpan />
      </div>
      <LagCharts minutes={useChartSpan()} />
      <div className="bar bus-filters">
        <Choice label="Which subscribers" options={choices} value={show} change={choose} />
        <p className="page-count" role="status">
          {queued === 0 ? 'all events are delivered' : `${queued.toLocaleString('en')} events wait`}
        </p>
      </div>
      {shown.length === 0 ? (
        <Empty title="No subscriber fits these filters" />
      ) : (
        <SubscribersTable subscribers={shown} />
      )}
    </>
  );
}

function SubscribersTable({ subscribers }: { readonly subscribers: readonly Subscriber[] }) {
  return (
    <table className="table bus-subscribers">
      <thead>
        <tr>
          <th scope="col">Subscriber</th>
          <th scope="col">State</th>
          <th scope="col" className="wide">
            Why
          </th>
          <th scope="col" className="wide">
            Health
          </th>
          <th scope="col" className="number">
            Waiting
          </th>
          <th scope="col">Oldest</th>
          <th scope="col" className="wide">
            Next attempt
          </th>
          <th scope="col" className="wide">
            Topics
          </th>
        </tr>
      </thead>
      <tbody>
        {subscribers.map((subscriber) => (
          <Row key={subscriber.id} subscriber={subscriber} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ subscriber }: { readonly subscriber: Subscriber }) {
  const { subscriber: name, events, health, reason, topics, next_attempt_at: nextAt } = subscriber;
  return (
    <tr>
      <th scope="row">
        <Link href={`/subscribers/${encodeURIComponent(name)}`}>{name}</Link>
      </th>
      <td>
        <SubscriberState subscriber={subscriber} />
      </td>
      <td className="wide muted">{reason}</td>
      <td className="wide">
        <Health points={health} />
      </td>
      <td className="number">{events.queued.toLocaleString('en')}</td>
      <td>{events.oldest === null ? '–' : <Age at={events.oldest} />}</td>
      <td className="wide">{nextAt === null ? '–' : <Due at={nextAt} />}</td>
      <td className="wide muted">{topics.join(', ')}</td>
    </tr>
  );
}

function NoSubscribers() {
  return (
    <Empty title="No subscribers yet">
      <p>A subscriber receives the events of its topics in batches. Watch a topic from a terminal:</p>
      <p>
        <Command>millrace listen orders</Command>
      </p>
      <p>Or have them sent to a server of yours, with a key of the role client or subscriber:</p>
      <p>
        <Command>millrace subscribe https://example.com/events orders</Command>
      </p>
    </Empty>
  );
}
