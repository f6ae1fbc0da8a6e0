/** The list of jobs. On a phone what stands in the columns further right moves under the name, or away. */
import { Link } from 'wouter';
import { PauseAction } from '../actions/pause.tsx';
import { StateCount } from '../kit/state.tsx';
import { useMayOperate } from '../session/session.ts';
import { Age } from '../time/times.tsx';
import { PausedTag } from './paused-tag.tsx';
import type { Activity, JobRow } from './use-jobs.ts';

interface Props {
  readonly jobs: readonly JobRow[];
  readonly activity: ReadonlyMap<string, Activity>;
}

export function JobsTable({ jobs, activity }: Props) {
  const mayOperate = useMayOperate();
  return (
    <table className="table jobs-table">
      <thead>
        <tr>
          <th scope="col">Job</th>
          <th scope="col">Now</th>
          <th scope="col">Last hour</th>
          <th scope="col" className="wide number">
            Version
          </th>
          <th scope="col" className="wide">
            Updated
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
          <Row key={job.id} job={job} activity={activity.get(job.id)} mayOperate={mayOperate} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  readonly job: JobRow;
  readonly activity: Activity | undefined;
  readonly mayOperate: boolean;
}

function Row({ job, activity, mayOperate }: RowProps) {
  return (
    <tr>
      <th scope="row" className="job-name">
        <Link href={`/jobs/${job.id}`}>
          <span className="job-project">{job.project}</span>
          <span className="job-slash">/</span>
          {job.name}
        </Link>
        {job.paused ? <PausedTag /> : null}
        {job.description === '' ? null : <p className="job-description">{job.description}</p>}
      </th>
      <td className="counts">
        {activity === undefined ? null : (
          <>
            <StateCount state="running" count={activity.running} />
            <StateCount state="waiting" count={activity.waiting} />
          </>
        )}
      </td>
      <td className="counts">
        {activity === undefined ? null : (
          <>
            <StateCount state="success" count={activity.success} />
            <StateCount state="failure" count={activity.failure} />
            <StateCount state="error" count={activity.error} />
          </>
        )}
      </td>
      <td className="wide number muted">{job.version}</td>
      <td className="wide muted">
        <Age at={job.updated_at} />
      </td>
      {mayOperate ? (
        <td className="wide actions">
          <PauseAction job={job} />
        </td>
      ) : null}
    </tr>
  );
}
