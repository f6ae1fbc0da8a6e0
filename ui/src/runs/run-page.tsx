/** One run: how it stands, when it did what, and its output as it comes. */
import { Link } from 'wouter';
import { Failure } from '../kit/failure.tsx';
import { Loading } from '../kit/loading.tsx';
import { State } from '../kit/state.tsx';
import { useTitle } from '../kit/title.ts';
import { useMayOperate } from '../session/session.ts';
import { CancelRunAction } from '../actions/cancel-run.tsx';
import { RunFacts } from './run-facts.tsx';
import { RunLog } from './run-log.tsx';
import './runs.css';
import { type Run, useRun } from './use-runs.ts';

export default function RunPage({ id }: { readonly id: string }) {
  const { data: run, error, refetch } = useRun(id);
  const mayOperate = useMayOperate();
  const name = run?.task?.name ?? `Run ${id.slice(0, 8)}`;
  useTitle(run === undefined ? undefined : `${name} · ${run.state}`);
  if (run === undefined) {
    return error === null ? <Loading what="Reading the run" /> : <Failure error={error} retry={refetch} />;
  }
  return (
    <>
      <Crumbs run={run} />
      <header className="page-head">
        <h1>{name}</h1>
        <span role="status">
          <State state={run.state} />
        </span>
        {mayOperate && run.finished_at === null ? (
          <div className="page-actions">
            <CancelRunAction run={run} />
          </div>
        ) : null}
      </header>
      {run.reason === null ? null : <p className="lede">{run.reason}</p>}
      <RunFacts run={run} />
      <RunLog run={run.id} />
    </>
  );
}

function Crumbs({ run }: { readonly run: Run }) {
  return (
    <nav className="crumbs" aria-label="Where this is">
      <Link href="/jobs">Jobs</Link>
      {run.job === null ? null : (
        <>
          <span aria-hidden="true">/</span>
          <Link href={`/jobs?q=${encodeURIComponent(run.job.project)}`}>{run.job.project}</Link>
          <span aria-hidden="true">/</span>
          <Link href={`/jobs/${run.job.id}`}>{run.job.name}</Link>
        </>
      )}
    </nav>
  );
}
