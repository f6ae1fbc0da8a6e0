/** Links to the project and job of a run, and to the graph of its instant; or to the step of an execution that it performs. */
import { Link } from 'wouter';
import { Instant } from '../time/times.tsx';
import type { RunDetail } from './use-runs.ts';

export function RunCrumbs({ run: { job, instant, node } }: { readonly run: RunDetail }) {
  return (
    <nav className="crumbs" aria-label="Where this is">
      <Link href="/runs">Runs</Link>
      {node == null ? null : <OfNode node={node} />}
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

function OfNode({ node: { execution, id } }: { readonly node: NonNullable<RunDetail['node']> }) {
  return (
    <>
      <span aria-hidden="true">/</span>
      <Link href={`/executions/${execution}`}>execution {execution.slice(-8)}</Link>
      <span aria-hidden="true">/</span>
      <Link href={`/executions/${execution}?node=${encodeURIComponent(id)}`}>its step</Link>
    </>
  );
}
