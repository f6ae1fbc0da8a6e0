/** One token, that is one task at one instant: how it stands, why, its runs, and what may be done with it. */
import { Link } from 'wouter';
import { ActivateAction } from '../actions/activate.tsx';
import { ClearInstantAction } from '../actions/clear-instant.tsx';
import { Answer } from '../kit/answer.tsx';
import { State } from '../kit/state.tsx';
import { sentence } from '../runs/sentence.ts';
import { reasonLinks } from '../runs/why-links.ts';
import { useMayOperate } from '../session/session.ts';
import { Age, Instant, Span } from '../time/times.tsx';
import { SidePanel } from './side-panel.tsx';
import { type Job, useTokensAt } from './use-job.ts';
import { type TokenRun, useTokenRuns, useWhyToken } from './use-token.ts';

interface Props {
  readonly job: Job;
  readonly task: { readonly id: string; readonly name: string };
  readonly instant: string;
  readonly close: () => void;
}

/** A task that is run over and over at one instant fills no screen with it. */
const mostRuns = 12;

export function TokenPanel({ job, task, instant, close }: Props) {
  const mayOperate = useMayOperate();
  const token = useTokensAt(job.id, instant).data?.find(({ task_id }) => task_id === task.id);
  const at = { job: job.id, task: task.id, instant };
  return (
    <SidePanel title={task.name} close={close}>
      <p className="side-panel-facts">
        {token === undefined ? <span className="muted">not begun</span> : <State state={token.state} />}
        <Instant at={instant} />
        {token === undefined || token.state !== 'waiting' ? null : (
          <span className="muted">
            {token.count} of {token.threshold} counted
          </span>
        )}
      </p>
      {mayOperate ? (
        <div className="side-panel-actions">
          <ActivateAction job={job} task={task} instant={instant} />
          <ClearInstantAction job={job} instant={instant} />
        </div>
      ) : null}
      <Why {...at} />
      <Runs {...at} />
    </SidePanel>
  );
}

type TokenProps = Parameters<typeof useTokenRuns>[0];

type Why = NonNullable<ReturnType<typeof useWhyToken>['data']>;

/** The panel names task and instant already: the first reason says the most in the fewest words. */
function Why(token: TokenProps) {
  return (
    <section>
      <h3>Why</h3>
      <Answer of={useWhyToken(token)} what="Reading why">
        {({ summary, reasons: [first, ...rest], next }) => (
          <>
            <p>{first === undefined ? sentence(summary) : <Reason reason={first} />}</p>
            {rest.length === 0 ? null : (
              <ul className="token-reasons">
                {rest.map((reason, index) => (
                  // two reasons may be worded alike
                  <li key={index}>
                    <Reason reason={reason} />
                  </li>
                ))}
              </ul>
            )}
            {next === null ? null : <p className="token-next">{sentence(next)}</p>}
          </>
        )}
      </Answer>
    </section>
  );
}

function Reason({ reason: { message, data } }: { readonly reason: Why['reasons'][number] }) {
  return (
    <>
      {sentence(message)}
      {reasonLinks(data).map(({ href, label }) => (
        <span key={href}>
          {' '}
          <Link href={href}>{label}</Link>
        </span>
      ))}
    </>
  );
}

function Runs(token: TokenProps) {
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
                  {runs
                    .toReversed()
                    .slice(0, mostRuns)
                    .map((run) => (
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
