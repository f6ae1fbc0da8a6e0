/** One worker: what it serves, its current runs, and its latest runs, filtered by `?state=` in the address. */
import { Link } from 'wouter';
import { Answer } from '../kit/answer.tsx';
import { Choice } from '../kit/choice.tsx';
import { Empty } from '../kit/empty.tsx';
import { Fact, Facts } from '../kit/facts.tsx';
import { useTitle } from '../kit/title.ts';
import { useUrlState } from '../kit/url-state.ts';
import './fleet.css';
import { Places } from './places.tsx';
import { Presence } from './presence.tsx';
import { useWorker, type Worker } from './use-fleet.ts';
import { WorkerRuns } from './worker-runs.tsx';

const choices = [
  { value: '', label: 'All' },
  { value: 'failed', label: 'Failed' },
  { value: 'success', label: 'Succeeded' },
  { value: 'cancelled', label: 'Cancelled' },
] as const;

const statesOf: Readonly<Record<string, string>> = {
  failed: 'failure,timeout,error,retry',
  success: 'success',
  cancelled: 'cancelled',
};
const ended = 'success,failure,timeout,error,cancelled,retry';

export default function WorkerPage({ id }: { readonly id: string }) {
  const held = useWorker(id, 'running');
  useTitle(held.data?.name);
  return (
    <Answer of={held} what="Reading the worker">
      {(worker) => (
        <>
          <nav className="crumbs" aria-label="Where this is">
            <Link href="/workers">Workers</Link>
          </nav>
          <header className="page-head">
            <h1>{worker.name}</h1>
            <span role="status">
              <Presence status={worker.status} lastSeenAt={worker.last_seen_datetime} />
            </span>
          </header>
          <WorkerFacts worker={worker} />
          <section className="worker-part" aria-labelledby="worker-held">
            <h2 id="worker-held">Running now</h2>
            {worker.tasks.length === 0 ? (
              <p className="muted">No runs of this tenant.</p>
            ) : (
              <WorkerRuns runs={worker.tasks} />
            )}
          </section>
          <LastRuns id={id} />
        </>
      )}
    </Answer>
  );
}

function WorkerFacts({ worker }: { readonly worker: Worker }) {
  return (
    <Facts>
      <Fact term="Places">
        <Places taken={worker.running_tasks} all={worker.total_tasks} />
      </Fact>
      <Fact term="Queues">{worker.queues.join(', ')}</Fact>
      <Fact term="Runtimes">{worker.runtimes.join(', ')}</Fact>
      {Object.entries(worker.unavailable ?? {}).map(([runtime, reason]) => (
        <Fact key={runtime} term={`${runtime} unavailable`}>
          {reason}
        </Fact>
      ))}
      <Fact term="Version">{worker.version}</Fact>
      {worker.addr === '' ? null : <Fact term="Address">{worker.addr}</Fact>}
      <Fact term="Worker">
        <code>{worker.uuid}</code>
      </Fact>
    </Facts>
  );
}

function LastRuns({ id }: { readonly id: string }) {
  const [choice, choose] = useUrlState('state');
  const worker = useWorker(id, statesOf[choice] ?? ended);
  return (
    <section className="worker-part" aria-labelledby="worker-last">
      <div className="bar">
        <h2 id="worker-last">Last runs</h2>
        <Choice label="Which runs" options={choices} value={choice} change={choose} />
      </div>
      <Answer of={worker} what="Reading its runs">
        {({ tasks }) => {
          if (tasks.length > 0) return <WorkerRuns runs={tasks} />;
          return <Empty title={choice === '' ? 'It has finished no run of this tenant yet' : 'No such runs'} />;
        }}
      </Answer>
    </section>
  );
}
