/** The list of jobs. On a phone what stands in the columns further right moves under the name, or away. */
import { Link } from 'wouter';
import { PauseAction } from '../actions/pause.tsx';
import { State, StateCount } from '../kit/state.tsx';
import { useMayOperate } from '../session/session.ts';
import { Due, Instant } from '../time/times.tsx';
import { PausedTag } from './paused-tag.tsx';
import { RecentBars } from './recent-bars.tsx';
import type { JobRow } from './use-jobs.ts';

/** As far as the server counts. */
const queuedUpTo = 100;

interface Props {
  readonly jobs: readonly JobRow[];
  readonly isOneProject: boolean;
}

export function JobsTable({ jobs, isOneProject }: Props) {
  const mayOperate = useMayOperate();
  return (
    <table className="table jobs-table">
      <thead>
        <tr>
          <th scope="col">Job</th>
          <th scope="col">Now</th>
          <th scope="col">Latest instants</th>
          <th scope="col" className="wide">
            Last
          </th>
          <th scope="col" className="wide">
            Next
          </th>
          {mayOperate ? (
            <th scope="col" className="wide">
              <span className="unseen">Actions</span>
            </th>
          ) : null}
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <Row key={job.id} job={job} isOneProject={isOneProject} mayOperate={mayOperate} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  readonly job: JobRow;
  readonly isOneProject: boolean;
  readonly mayOperate: boolean;
}

function Row({ job, isOneProject, mayOperate }: RowProps) {
  const last = job.recent.at(-1);
  return (
    <tr>
      <th scope="row" className="job-name">
        {isOneProject ? null : (
          <>
            <Link href={`/projects/${job.project.id}`} className="job-project">
              {job.project.name}
            </Link>
            <span className="job-slash">/</span>
          </>
        )}
        <Link href={`/jobs/${job.id}`}>{job.name}</Link>
        {job.paused ? <PausedTag /> : null}
        {job.description === '' ? null : <p className="job-description">{job.description}</p>}
      </th>
      <td className="counts">
        <StateCount state="running" count={job.running} />
        <StateCount state="active" count={job.queued} upTo={queuedUpTo} />
      </td>
      <td>
        <RecentBars job={job.id} recent={job.recent} />
      </td>
      <td className="wide">
        {last === undefined ? (
          <span className="muted">never ran</span>
        ) : (
          <Link href={`/jobs/${job.id}?instant=${encodeURIComponent(last.instant)}`} className="quiet">
            <State state={last.state} /> <Instant at={last.instant} />
          </Link>
        )}
      </td>
      <td className="wide muted">{job.next === null ? '–' : <Due at={job.next.due} />}</td>
      {mayOperate ? (
        <td className="wide actions">
          <PauseAction job={job} />
        </td>
      ) : null}
    </tr>
  );
}
