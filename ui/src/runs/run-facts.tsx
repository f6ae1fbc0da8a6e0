/** The facts of a run, as a list of terms. */
import { Link } from 'wouter';
import { Fact, Facts } from '../kit/facts.tsx';
import { Age, Span } from '../time/times.tsx';
import type { RunDetail } from './use-runs.ts';

export function RunFacts({ run }: { readonly run: RunDetail }) {
  return (
    <Facts>
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
      {run.node == null ? <Fact term="Job version">{run.version}</Fact> : null}
      {run.worker_id === null ? null : (
        <Fact term="Worker">
          <Link href={`/workers/${run.worker_id}`} title={run.worker_id}>
            <code>{run.worker_id.slice(-6)}</code>
          </Link>
        </Fact>
      )}
      <Fact term="Run">
        <code>{run.id}</code>
      </Fact>
    </Facts>
  );
}
