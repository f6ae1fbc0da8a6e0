/** One job: what it does now, its tasks, and its document. The view is in the address (`?tab=`). */
import type { ReactNode } from 'react';
import { Link, useSearchParams } from 'wouter';
import { Failure } from '../kit/failure.tsx';
import { Loading } from '../kit/loading.tsx';
import { useTitle } from '../kit/title.ts';
import { JobDocument } from './job-document.tsx';
import { JobHead } from './job-head.tsx';
import { JobRuns } from './job-runs.tsx';
import { JobTasks } from './job-tasks.tsx';
import './jobs.css';
import { type Job, useJob } from './use-job.ts';

const tabs = [
  { name: 'runs', label: 'Runs' },
  { name: 'tasks', label: 'Tasks' },
  { name: 'document', label: 'Document' },
] as const;
type Tab = (typeof tabs)[number]['name'];

export function JobPage({ id }: { readonly id: string }) {
  const { data: job, error, refetch } = useJob(id);
  const [search] = useSearchParams();
  const tab = tabs.find(({ name }) => name === search.get('tab'))?.name ?? 'runs';
  useTitle(job?.name);
  if (job === undefined) {
    return error === null ? <Loading what="Reading the job" /> : <Failure error={error} retry={refetch} />;
  }
  return (
    <>
      <JobHead job={job} />
      <nav className="tabs" aria-label="Views of this job">
        {tabs.map(({ name, label }) => (
          <Link
            key={name}
            href={name === 'runs' ? `/jobs/${id}` : `/jobs/${id}?tab=${name}`}
            aria-current={name === tab ? 'page' : undefined}
          >
            {label}
          </Link>
        ))}
      </nav>
      {views[tab](job)}
    </>
  );
}

const views: Readonly<Record<Tab, (job: Job) => ReactNode>> = {
  runs: (job) => <JobRuns job={job.id} />,
  tasks: (job) => <JobTasks job={job.id} />,
  document: (job) => <JobDocument text={job.raw_definition} version={job.version} />,
};
