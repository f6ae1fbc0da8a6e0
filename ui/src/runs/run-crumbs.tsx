/** Links to the project and job of a run, and to the graph of its instant. */
import { Link } from 'wouter';
import { Instant } from '../time/times.tsx';
import type { Run } from './use-runs.ts';

export function RunCrumbs({ run: { job, instant } }: { readonly run: Run }) {
  return (
    <nav className="crumbs" aria-label="Where this is">
      <Link href="/runs">Runs</Link>
      {job === null ? null : (
        <>
          <span aria-hidden="true">/</span>
          <Link href={`/jobs?q=${encodeURIComponent(job.project)}`}>{job.project}</Link>
          <span aria-hidden="true">/</span>
          <Link href={`/jobs/${job.id}`}>{job.name}</Link>
          {instant === null ? null : (
            <>
              <span aria-hidden="true">/</span>
              <Link href={`/jobs/${job.id}?instant=${encodeURIComponent(instant)}`} title="The graph at this instant">
                <Instant at={instant} />
              </Link>
            </>
          )}
        </>
      )}
    </nav>
  );
}
