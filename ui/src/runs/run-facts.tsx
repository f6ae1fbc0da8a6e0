/** What is known of a run, as a list of terms. */
import type { ReactNode } from 'react';
import { Age, Instant, Span } from '../time/times.tsx';
import type { Run } from './use-runs.ts';

export function RunFacts({ run }: { readonly run: Run }) {
  return (
    <dl className="facts">
      {run.instant === null ? null : (
        <Fact term="Instant">
          <Instant at={run.instant} />
        </Fact>
      )}
      <Fact term="Queued">
        <Age at={run.queued_at} />
      </Fact>
      <Fact term="Waited">
        <Span from={run.queued_at} to={run.started_at ?? run.finished_at} />
      </Fact>
      {run.started_at === null ? null : (
        <Fact term="Took">
          <Span from={run.started_at} to={run.finished_at} />
        </Fact>
      )}
      {run.exit_code === null ? null : <Fact term="Exit code">{run.exit_code}</Fact>}
      <Fact term="Attempt">{run.attempt}</Fact>
      <Fact term="Priority">{run.priority}</Fact>
      <Fact term="Job version">{run.version}</Fact>
      {run.worker_id === null ? null : (
        <Fact term="Worker">
          <code title={run.worker_id}>{run.worker_id.slice(-12)}</code>
        </Fact>
      )}
      <Fact term="Run">
        <code>{run.id}</code>
      </Fact>
    </dl>
  );
}

function Fact({ term, children }: { readonly term: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  );
}
