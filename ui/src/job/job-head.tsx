/** The head of a job's page: its project, its actions, and its state. */
import { Link } from 'wouter';
import { BackfillAction } from '../actions/backfill.tsx';
import { PauseAction } from '../actions/pause.tsx';
import { RerunFailedAction } from '../actions/rerun-failed.tsx';
import { RunNowAction } from '../actions/run-now.tsx';
import { PausedTag } from '../jobs/paused-tag.tsx';
import { useMayOperate } from '../session/session.ts';
import { Due } from '../time/times.tsx';
import type { Job } from './use-job.ts';

export function JobHead({ job }: { readonly job: Job }) {
  const mayOperate = useMayOperate();
  return (
    <>
      <nav className="crumbs" aria-label="Where this is">
        <Link href="/projects">Projects</Link>
        <span aria-hidden="true">/</span>
        <Link href={`/projects/${job.project_id}`}>{job.project}</Link>
      </nav>
      <header className="page-head">
        <h1>{job.name}</h1>
        <Link href={`/jobs/${job.id}/versions`} className="tag plain">
          version {job.version}
        </Link>
        {job.paused ? <PausedTag /> : null}
        {mayOperate ? (
          <div className="page-actions">
            <PauseAction job={job} />
            <RerunFailedAction job={job} />
            <BackfillAction job={job} />
            <RunNowAction job={job} />
          </div>
        ) : null}
      </header>
      {job.description === '' ? null : <p className="lede">{job.description}</p>}
      <Figures job={job} />
    </>
  );
}

function Figures({ job }: { readonly job: Job }) {
  const figures = [
    { label: 'running', value: job.active_tasks },
    { label: 'ready or held', value: job.waiting_tasks },
    { label: 'succeeded, last hour', value: job.succeeded_tasks_last_hour },
    { label: 'failed, last hour', value: job.failed_tasks_last_hour, bad: true },
    { label: 'in error, last hour', value: job.error_tasks_last_hour, bad: true },
  ];
  return (
    <dl className="figures">
      {figures.map(({ label, value, bad }) => (
        <div key={label} data-bad={bad === true && value > 0 ? '' : undefined}>
          <dt>{label}</dt>
          <dd>{value.toLocaleString('en')}</dd>
        </div>
      ))}
      <div>
        <dt>next firing</dt>
        <dd>{job.next_firing === null ? '–' : <Due at={job.next_firing.due} />}</dd>
      </div>
    </dl>
  );
}
