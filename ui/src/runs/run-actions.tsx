/** What may be done about a run: cancel it while it is under way, run its task again, run again all that failed with it. */
import { ActivateAction } from '../actions/activate.tsx';
import { CancelRunAction } from '../actions/cancel-run.tsx';
import { RerunFailedAction } from '../actions/rerun-failed.tsx';
import { useJob } from '../job/use-job.ts';
import { useMayOperate } from '../session/session.ts';
import type { Run } from './use-runs.ts';

const failed: ReadonlySet<Run['state']> = new Set(['failure', 'timeout', 'error']);

export function RunActions({ run }: { readonly run: Run }) {
  if (!useMayOperate()) return null;
  return (
    <div className="page-actions">{run.finished_at === null ? <CancelRunAction run={run} /> : <Again run={run} />}</div>
  );
}

function Again({ run: { job, task, instant, state } }: { readonly run: Run }) {
  if (job === null || task === null || instant === null) return null;
  return <AgainOf job={job.id} task={task} instant={instant} isFailed={failed.has(state)} />;
}

interface AgainProps {
  readonly job: string;
  readonly task: { readonly id: string; readonly name: string };
  readonly instant: string;
  readonly isFailed: boolean;
}

function AgainOf({ job: id, task, instant, isFailed }: AgainProps) {
  const { data: job } = useJob(id);
  if (job === undefined) return null;
  return (
    <>
      {isFailed ? <RerunFailedAction job={job} instant={instant} /> : null}
      <ActivateAction job={job} task={task} instant={instant} />
    </>
  );
}
