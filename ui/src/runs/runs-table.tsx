/** A list of runs. A list of several jobs has a column for the job; on a phone the rightmost columns are hidden. */
import { Link } from 'wouter';
import { State } from '../kit/state.tsx';
import { Age, Instant, Span } from '../time/times.tsx';
import './runs.css';
import type { Run } from './use-runs.ts';

interface Props {
  readonly runs: readonly Run[];
  readonly ofManyJobs?: boolean;
  /** The one whose page this is. */
  readonly current?: string;
}

export function RunsTable({ runs, ofManyJobs = false, current }: Props) {
  return (
    <table className="table runs-table">
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Task</th>
          {ofManyJobs ? (
            <th scope="col" className="wide">
              Job
            </th>
          ) : null}
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
          <Row key={run.id} run={run} ofManyJobs={ofManyJobs} isCurrent={run.id === current} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  readonly run: Run;
  readonly ofManyJobs: boolean;
  readonly isCurrent: boolean;
}

function Row({ run, ofManyJobs, isCurrent }: RowProps) {
  return (
    <tr aria-current={isCurrent ? 'true' : undefined}>
      <td>
        <State state={run.state} />
      </td>
      <th scope="row">
        <Link href={`/runs/${run.id}`}>{run.task?.name ?? run.id.slice(0, 8)}</Link>
        {isCurrent ? <span className="tag">this one</span> : null}
        {ofManyJobs && run.job !== null ? (
          <span className="run-job">
            {run.job.project}/{run.job.name}
          </span>
        ) : null}
      </th>
      {ofManyJobs ? <td className="wide">{run.job === null ? <OfFlow /> : <JobLink job={run.job} />}</td> : null}
      <td className="wide">{run.instant === null ? '–' : <InstantLink run={run} at={run.instant} />}</td>
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

function JobLink({ job }: { readonly job: NonNullable<Run['job']> }) {
  return (
    <Link href={`/jobs/${job.id}`} className="quiet-link">
      <span className="muted">{job.project}/</span>
      {job.name}
    </Link>
  );
}

/** Lists do not name the execution; the page of the run leads to it. */
function OfFlow() {
  return <span className="muted">a step of a flow</span>;
}

/** Leads to the graph of the job as it stood then. */
function InstantLink({ run, at }: { readonly run: Run; readonly at: string }) {
  if (run.job === null) return <Instant at={at} />;
  return (
    <Link href={`/jobs/${run.job.id}?instant=${encodeURIComponent(at)}`} className="quiet-link">
      <Instant at={at} />
    </Link>
  );
}
