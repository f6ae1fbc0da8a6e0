/** A list of runs, newest first. */
import { Link } from 'wouter';
import { State } from '../kit/state.tsx';
import { Age, Instant, Span } from '../time/times.tsx';
import './runs.css';
import type { Run } from './use-runs.ts';

export function RunsTable({ runs }: { readonly runs: readonly Run[] }) {
  return (
    <table className="table runs-table">
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Task</th>
          <th scope="col" className="wide">
            Instant
          </th>
          <th scope="col" className="wide number">
            Attempt
          </th>
          <th scope="col">Queued</th>
          <th scope="col" className="number">
            Took
          </th>
          <th scope="col" className="wide">
            Reason
          </th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <Row key={run.id} run={run} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ run }: { readonly run: Run }) {
  return (
    <tr>
      <td>
        <State state={run.state} />
      </td>
      <th scope="row">
        <Link href={`/runs/${run.id}`}>{run.task?.name ?? run.id.slice(0, 8)}</Link>
      </th>
      <td className="wide">{run.instant === null ? '–' : <Instant at={run.instant} />}</td>
      <td className="wide number muted">{run.attempt}</td>
      <td className="muted">
        <Age at={run.queued_at} />
      </td>
      <td className="number">{run.started_at === null ? '–' : <Span from={run.started_at} to={run.finished_at} />}</td>
      <td className="wide muted reason" title={run.reason ?? undefined}>
        {run.reason}
      </td>
    </tr>
  );
}
