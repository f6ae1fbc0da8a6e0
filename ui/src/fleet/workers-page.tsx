/** All workers of the last day: whether they are up, their taken places, and what they serve. */
import { Link } from 'wouter';
import { Answer } from '../kit/answer.tsx';
import { Choice } from '../kit/choice.tsx';
import { Command } from '../kit/command.tsx';
import { Empty } from '../kit/empty.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import './fleet.css';
import { Places } from './places.tsx';
import { Presence } from './presence.tsx';
import { useWorkers, type Worker } from './use-fleet.ts';

const choices = [
  { value: '', label: 'All' },
  { value: 'up', label: 'Up' },
  { value: 'silent', label: 'Silent' },
] as const;

export default function WorkersPage() {
  useTitle('Workers');
  const workers = useWorkers();
  const [choice, choose] = useUrlState('status');
  return (
    <>
      <header className="page-head">
        <h1>Workers</h1>
        {workers.data === undefined ? null : (
          <p className="page-count" role="status">
            {summaryOf(workers.data)}
          </p>
        )}
      </header>
      <Answer of={workers} what="Reading workers">
        {(all) => {
          if (all.length === 0) return <NoWorkers />;
          const shown = all.filter(({ status }) => choice === '' || (status === 'up') === (choice === 'up'));
          return (
            <>
              <Choice label="Which workers" options={choices} value={choice} change={choose} />
              {shown.length === 0 ? <Empty title="No such worker" /> : <WorkersTable workers={shown} />}
            </>
          );
        }}
      </Answer>
    </>
  );
}

function summaryOf(workers: readonly Worker[]): string {
  const up = workers.filter(({ status }) => status === 'up');
  const [taken, all] = [sum(up.map((w) => w.running_tasks)), sum(up.map((w) => w.total_tasks))];
  return `${up.length} up, ${taken} of ${all} places taken`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function WorkersTable({ workers }: { readonly workers: readonly Worker[] }) {
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">Worker</th>
          <th scope="col">State</th>
          <th scope="col">Places</th>
          <th scope="col" className="wide">
            Queues
          </th>
          <th scope="col" className="wide">
            Runtimes
          </th>
          <th scope="col" className="wide">
            Version
          </th>
        </tr>
      </thead>
      <tbody>
        {workers.map((worker) => (
          <tr key={worker.uuid}>
            <th scope="row">
              <Link href={`/workers/${worker.uuid}`} className="worker-name">
                {worker.name}
              </Link>{' '}
              <code className="muted" title={worker.uuid}>
                {worker.uuid.slice(-6)}
              </code>
            </th>
            <td>
              <Presence status={worker.status} lastSeenAt={worker.last_seen_datetime} />
            </td>
            <td>{worker.status === 'up' ? <Places taken={worker.running_tasks} all={worker.total_tasks} /> : '–'}</td>
            <td className="wide">{worker.queues.join(', ')}</td>
            <td className="wide muted">
              {worker.runtimes.join(', ')}
              {Object.entries(worker.unavailable ?? {}).map(([runtime, reason]) => (
                <div key={runtime}>
                  {runtime} unavailable: {reason}
                </div>
              ))}
            </td>
            <td className="wide muted">{worker.version}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function NoWorkers() {
  return (
    <Empty title="No worker in the last day">
      <p>Runs wait until a worker connects. Start one on any machine that can reach this server:</p>
      <p>
        <Command>millrace worker</Command>
      </p>
    </Empty>
  );
}
