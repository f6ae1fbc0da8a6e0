/** Runs of one worker. */
import { Link } from 'wouter';
import { State } from '../kit/state.tsx';
import { Age, Instant, Span } from '../time/times.tsx';
import type { WorkerRun } from './use-fleet.ts';

export function WorkerRuns({ runs }: { readonly runs: readonly WorkerRun[] }) {
  return (
    <table className="table">
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Task</th>
          <th scope="col" className="wide">
            Job
          </th>
          <th scope="col" className="wide">
            Instant
          </th>
          <th scope="col">Started</th>
          <th scope="col" className="number">
            Took
          </th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.task_run_id}>
            <td>
              <State state={run.state} />
            </td>
            <th scope="row">
              <Link href={`/runs/${run.task_run_id}`} className="worker-name">
                {run.task_name}
              </Link>
            </th>
            <td className="wide">
              <Link href={`/jobs/${run.job_id}`} className="worker-name">
                <span className="muted">{run.project_name}/</span>
                {run.job_name}
              </Link>
            </td>
            <td className="wide">
              <Instant at={run.trigger_datetime} />
            </td>
            <td className="muted">{run.started_datetime === null ? '–' : <Age at={run.started_datetime} />}</td>
            <td className="number">
              {run.started_datetime === null ? '–' : <Span from={run.started_datetime} to={run.finish_datetime} />}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
