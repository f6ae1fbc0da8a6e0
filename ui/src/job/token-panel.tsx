/**
 * One token, that is one task at one instant: how it stands, why, its runs, and what may be done with it. In a job that
 * has had no instant yet: what the task waits for.
 */
import { Link } from 'wouter';
import { ActivateAction } from '../actions/activate.tsx';
import { ClearInstantAction } from '../actions/clear-instant.tsx';
import { RunNowAction } from '../actions/run-now.tsx';
import { BriefExplanation } from '../explain/explanation.tsx';
import { Answer } from '../kit/answer.tsx';
import { Failure } from '../kit/failure.tsx';
import { State } from '../kit/state.tsx';
import { useMayOperate } from '../session/session.ts';
import { Age, Instant, Span } from '../time/times.tsx';
import { SidePanel } from '../kit/side-panel.tsx';
import { type Graph, type Job, useGraph, useTokensAt } from './use-job.ts';
import { type TokenRun, useTokenRuns, useWhyToken } from './use-token.ts';

interface Props {
  readonly job: Job;
  readonly task: { readonly id: string; readonly name: string };
  /** Undefined where the job has had none yet. */
  readonly instant: string | undefined;
  readonly close: () => void;
}

/** A task that is run over and over at one instant fills no screen with it. */
const mostRuns = 12;

export function TokenPanel({ job, task, instant, close }: Props) {
  return (
    <SidePanel title={task.name} close={close}>
      {instant === undefined ? (
        <NeverBegun job={job} task={task} />
      ) : (
        <AtInstant job={job} task={task} instant={instant} />
      )}
    </SidePanel>
  );
}

type TaskProps = Pick<Props, 'job' | 'task'>;

function AtInstant({ job, task, instant }: TaskProps & { readonly instant: string }) {
  const mayOperate = useMayOperate();
  const tokens = useTokensAt(job.id, instant);
  const at = { job: job.id, task: task.id, instant };
  return (
    <>
      <p className="side-panel-facts">
        <Instant at={instant} />
        {tokens.data === undefined ? null : <Standing token={tokens.data.find(({ task_id }) => task_id === task.id)} />}
      </p>
      {tokens.data === undefined && tokens.error !== null ? (
        <Failure error={tokens.error} retry={tokens.refetch} />
      ) : null}
      {mayOperate ? (
        <div className="side-panel-actions">
          <ActivateAction job={job} task={task} instant={instant} />
          <ClearInstantAction job={job} instant={instant} />
        </div>
      ) : null}
      <Why {...at} />
      <Runs {...at} />
    </>
  );
}

type Token = NonNullable<ReturnType<typeof useTokensAt>['data']>[number];

function Standing({ token }: { readonly token: Token | undefined }) {
  return (
    <>
      {token === undefined ? <span className="muted">not begun</span> : <State state={token.state} />}
      {token?.state === 'waiting' ? (
        <span className="muted">
          {token.count} of {token.threshold} counted
        </span>
      ) : null}
    </>
  );
}

function NeverBegun({ job, task }: TaskProps) {
  return (
    <>
      <p className="side-panel-facts muted">never run</p>
      {useMayOperate() ? (
        <div className="side-panel-actions">
          <RunNowAction job={job} />
        </div>
      ) : null}
      <section>
        <h3>Waits for</h3>
        <Answer of={useGraph(job.id)} what="Reading the graph">
          {(graph) => <Waits graph={graph} task={task.id} />}
        </Answer>
      </section>
      <Why job={job.id} task={task.id} instant={undefined} />
    </>
  );
}

const kinds: Readonly<Record<Graph['edges'][number]['kind'], string>> = {
  success: 'to succeed',
  failure: 'to fail',
  done: 'to end',
  trigger: 'to fire',
};

function Waits({ graph: { nodes, edges, jobs }, task }: { readonly graph: Graph; readonly task: string }) {
  const parents = edges.filter(({ to }) => to === task);
  if (parents.length === 0) return <p>Nothing: it runs when the job is run.</p>;
  return (
    <ul className="token-waits">
      {parents.map(({ from, kind }) => {
        const node = nodes.find(({ id }) => id === from);
        const other = jobs.find(({ id }) => id === node?.job_id);
        return (
          <li key={`${from} ${kind}`}>
            {node?.name}
            {other === undefined ? null : (
              <>
                {' '}
                of <Link href={`/jobs/${other.id}`}>{`${other.project}/${other.name}`}</Link>
              </>
            )}{' '}
            <span className="muted">{kinds[kind]}</span>
          </li>
        );
      })}
    </ul>
  );
}

function Why(token: Parameters<typeof useWhyToken>[0]) {
  return (
    <section>
      <h3>Why</h3>
      <Answer of={useWhyToken(token)} what="Reading why">
        {(why) => <BriefExplanation why={why} />}
      </Answer>
    </section>
  );
}

function Runs(token: Parameters<typeof useTokenRuns>[0]) {
  return (
    <section>
      <h3>Runs</h3>
      <Answer of={useTokenRuns(token)} what="Reading runs">
        {(runs) =>
          runs.length === 0 ? (
            <p className="muted">None at this instant yet.</p>
          ) : (
            <>
              <table className="table">
                <tbody>
                  {runs.slice(0, mostRuns).map((run) => (
                    <RunRow key={run.task_run_id} run={run} />
                  ))}
                </tbody>
              </table>
              {runs.length > mostRuns ? <p className="muted">and {runs.length - mostRuns} earlier ones</p> : null}
            </>
          )
        }
      </Answer>
    </section>
  );
}

function RunRow({ run }: { readonly run: TokenRun }) {
  return (
    <tr>
      <th scope="row">
        <Link href={`/runs/${run.task_run_id}`}>Attempt {run.attempt}</Link>
      </th>
      <td>
        <State state={run.state} />
      </td>
      <td className="muted">
        <Age at={run.queued_datetime} />
      </td>
      <td className="number">
        {run.started_datetime === null ? '–' : <Span from={run.started_datetime} to={run.finish_datetime} />}
      </td>
    </tr>
  );
}
