/** One job: its head, and below it the view that the address names (`/jobs/:id/:view`). */
import { type ComponentType, lazy, Suspense } from 'react';
import { Link } from 'wouter';
import { Answer } from '../kit/answer.tsx';
import { Loading } from '../kit/loading.tsx';
import { NotFound } from '../kit/not-found.tsx';
import { useTitle } from '../kit/title.ts';
import { JobHead } from './job-head.tsx';
import './job.css';
import { JobRuns } from './job-runs.tsx';
import { type JobViewProps, useJob } from './use-job.ts';

interface View {
  readonly name: string;
  readonly label: string;
  readonly Body: ComponentType<JobViewProps>;
}

/** Heavy ones are fetched when they are first opened. */
const views: readonly View[] = [
  { name: '', label: 'Graph', Body: lazy(() => import('./graph/graph-view.tsx')) },
  { name: 'grid', label: 'Grid', Body: lazy(() => import('./grid/grid-view.tsx')) },
  { name: 'timeline', label: 'Timeline', Body: lazy(() => import('./timeline/timeline-view.tsx')) },
  { name: 'durations', label: 'Durations', Body: lazy(() => import('./durations/durations-view.tsx')) },
  { name: 'runs', label: 'Runs', Body: JobRuns },
  { name: 'triggers', label: 'Triggers', Body: lazy(() => import('./triggers/triggers-view.tsx')) },
  { name: 'backfills', label: 'Backfills', Body: lazy(() => import('./backfills/backfills-view.tsx')) },
  { name: 'versions', label: 'Versions', Body: lazy(() => import('./versions/versions-view.tsx')) },
  { name: 'definition', label: 'Definition', Body: lazy(() => import('./definition/definition-view.tsx')) },
];

export function JobPage({ id, view = '' }: { readonly id: string; readonly view?: string | undefined }) {
  const job = useJob(id);
  const shown = views.find(({ name }) => name === view);
  useTitle(job.data && shown ? `${job.data.name} · ${shown.label}` : undefined);
  if (shown === undefined) return <NotFound />;
  return (
    <Answer of={job} what="Reading the job">
      {(data) => (
        <>
          <JobHead job={data} />
          <JobTabs id={id} view={view} />
          <Suspense fallback={<Loading what={`Opening ${shown.label}`} />}>
            <shown.Body job={data} />
          </Suspense>
        </>
      )}
    </Answer>
  );
}

/** On a phone the row of views is longer than the screen. */
function intoView(tab: HTMLAnchorElement | null): void {
  tab?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

function JobTabs({ id, view }: { readonly id: string; readonly view: string }) {
  return (
    <nav className="tabs" aria-label="Views of this job">
      {views.map(({ name, label }) => (
        <Link
          key={name}
          href={name === '' ? `/jobs/${id}` : `/jobs/${id}/${name}`}
          aria-current={name === view ? 'page' : undefined}
          ref={name === view ? intoView : undefined}
        >
          {label}
        </Link>
      ))}
    </nav>
  );
}
