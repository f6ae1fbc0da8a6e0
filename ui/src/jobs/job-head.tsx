/** The head of a job's page: name, what may be done with it, and how it fares. */
import { Link } from 'wouter';
import { useMayOperate } from '../session/session.ts';
import { PauseButton } from './pause-button.tsx';
import { PausedTag } from './paused-tag.tsx';
import { RunButton } from './run-button.tsx';
import type { Job } from './use-job.ts';

export function JobHead({ job }: { readonly job: Job }) {
  const mayOperate = useMayOperate();
  return (
    <>
      <nav className="crumbs" aria-label="Where this is">
        <Link href="/jobs">Jobs</Link>
        <span aria-hidden="true">/</span>
        <Link href={`/jobs?q=${encodeURIComponent(`${job.project}/`)}`}>{job.project}</Link>
      </nav>
      <header className="page-head">
        <h1>{job.name}</h1>
        <span className="tag plain">version {job.version}</span>
        {job.paused ? <PausedTag /> : null}
        {mayOperate ? (
          <div className="page-actions">
            <PauseButton id={job.id} name={job.name} paused={job.paused} />
            <RunButton id={job.id} paused={job.paused} />
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
    { label: 'active', value: job.active_tasks },
    { label: 'waiting', value: job.waiting_tasks },
    { label: 'succeeded, last hour', value: job.succeeded_tasks_last_hour },
    { label: 'failed, last hour', value: job.failed_tasks_last_hour, bad: true },
    { label: 'in error, last hour', value: job.error_tasks_last_hour, bad: true },
  ];
  return (
    <dl className="figures">
      {figures.map(({ label, value, bad }) => (
        <div key={label} data-bad={bad === true && value > 0 ? '' : undefined}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
