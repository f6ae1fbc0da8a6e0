/** All topics: owner, rate and number of events, with charts of the whole bus or of the topic in the address (`?topic=`). */
import { Link } from 'wouter';
import { ActionDialog, ActionFoot, ActionForm } from '../actions/action-dialog.tsx';
import { useChange } from '../admin/use-change.ts';
import { tenant } from '../client.ts';
import { Answer } from '../kit/answer.tsx';
import { Command } from '../kit/command.tsx';
import { Empty } from '../kit/empty.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import { keys } from '../queries.ts';
import { Age } from '../time/times.tsx';
import { BusCharts } from './bus-charts.tsx';
import { BusHead } from './bus-head.tsx';
import { ChartSpan, useChartSpan } from './chart-span.tsx';
import { formatRate } from './format-rate.ts';
import { LagCharts } from './lag-charts.tsx';
import { ReadOnlyNote } from './read-only-note.tsx';
import { type Topic, useTopics } from './use-bus.ts';

export default function TopicsPage() {
  useTitle('Bus');
  const topics = useTopics();
  const minutes = useChartSpan();
  const [topic, chooseTopic] = useUrlState('topic');
  return (
    <>
      <BusHead />
      <div className="bar bus-filters">
        <ChartSpan />
        {topic === '' ? null : (
          <button type="button" className="button" onClick={() => chooseTopic('')}>
            Only {topic}: show all topics
          </button>
        )}
      </div>
      <BusCharts minutes={minutes} {...(topic === '' ? {} : { topic })} />
      {topic === '' ? null : (
        <>
          <p className="muted">Deliveries and lag are those of its subscribers, with their other topics.</p>
          <LagCharts minutes={minutes} topic={topic} />
        </>
      )}
      <ReadOnlyNote actions="delete topics" />
      <Answer of={topics} what="Reading topics">
        {(all) => (all.length === 0 ? <NoTopics /> : <TopicsTable topics={all} chosen={topic} choose={chooseTopic} />)}
      </Answer>
    </>
  );
}

interface TableProps {
  readonly topics: readonly Topic[];
  /** The topic of the charts. */
  readonly chosen: string;
  readonly choose: (topic: string) => void;
}

function TopicsTable({ topics, chosen, choose }: TableProps) {
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Topic</th>
          <th scope="col">Publisher</th>
          <th scope="col" className="number">
            Per minute
          </th>
          <th scope="col" className="number">
            Events
          </th>
          <th scope="col" className="number wide">
            Subscribers
          </th>
          <th scope="col" className="wide">
            Since
          </th>
          <th scope="col">
            <span className="unseen">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {topics.map((topic) => (
          <tr key={topic.name}>
            <th scope="row">
              <button
                type="button"
                className="button bare bus-open"
                title="Show its charts"
                aria-pressed={topic.name === chosen}
                onClick={() => choose(topic.name === chosen ? '' : topic.name)}
              >
                {topic.name}
              </button>
            </th>
            <td>{topic.publisher ?? 'Millrace'}</td>
            <td className="number">{formatRate(topic.last_minute)}</td>
            <td className="number">{topic.events.toLocaleString('en')}</td>
            <td className="number wide">
              <Link href={`/subscribers?q=${encodeURIComponent(topic.name)}`}>{topic.subscribers}</Link>
            </td>
            <td className="wide muted">
              <Age at={topic.created_at} />
            </td>
            <td className="actions">
              <ActionDialog label="Delete" title={`Delete ${topic.name}`} kind="danger">
                {(close) => <TopicDeletion name={topic.name} close={close} />}
              </ActionDialog>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function TopicDeletion({ name, close }: { readonly name: string; readonly close: () => void }) {
  const remove = useChange({
    outdates: keys.bus,
    change: () => tenant('DELETE /bus/topics/{name}', { params: { name } }),
    onDone: close,
  });
  return (
    <ActionForm submit={() => remove.mutate()}>
      <p className="preview">
        Its subscribers receive no further events of it. The next publisher of this name claims a new topic.
      </p>
      <ActionFoot close={close} act="Delete topic" kind="danger" disabled={remove.isPending}>
        <InlineFailure error={remove.error} />
      </ActionFoot>
    </ActionForm>
  );
}

function NoTopics() {
  return (
    <Empty title="No topics yet">
      <p>The first event that is published to a topic creates it. Its publisher then owns it:</p>
      <p>
        <Command>millrace publish orders https://example.com/orders/1 --type create</Command>
      </p>
    </Empty>
  );
}
