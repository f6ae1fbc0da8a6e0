/** The live progress of a backfill: fired instants, states of its runs, and the button that cancels it. */
import type { ReactNode } from 'react';
import { Answer } from '../kit/answer.tsx';
import { InlineFailure } from '../kit/failure.tsx';
import { Progress } from '../kit/progress.tsx';
import { StateCount } from '../kit/state.tsx';
import { ActionDialog, ActionFoot, ActionForm } from './action-dialog.tsx';
import './actions.css';
import { type Backfill, useBackfill, useCancelBackfill } from './use-backfill.ts';

interface Props {
  readonly job: string;
  readonly id: string;
  /** Shown beside the cancel button. */
  readonly children?: ReactNode;
}

export function BackfillProgress({ job, id, children }: Props) {
  const backfill = useBackfill(job, id);
  return (
    <Answer of={backfill} what="Reading the backfill">
      {(data) => (
        <div className="action-form">
          <BackfillBar backfill={data} />
          <RunsBar runs={data.runs} />
          <p role="status" className="note">
            {sentenceOf(data)}
          </p>
          <RunCounts runs={data.runs} isComplete={data.runs_complete} />
          <footer className="dialog-foot">
            {data.state === 'running' ? <CancelBackfill job={job} id={id} /> : null}
            {children}
          </footer>
        </div>
      )}
    </Answer>
  );
}

type Outline = Pick<Backfill, 'instants' | 'state'>;

export function BackfillBar({ backfill: { instants } }: { readonly backfill: Outline }) {
  return (
    <Progress
      label="Instants fired"
      total={instants.total}
      parts={[
        { name: 'fired', count: instants.fired },
        { name: 'skipped', count: instants.skipped, state: 'skipped' },
      ]}
    />
  );
}

/** The finished runs of those created so far, by result. */
function RunsBar({ runs }: { readonly runs: Backfill['runs'] }) {
  const total = Object.values(runs).reduce((sum, count) => sum + count, 0);
  const wrong = runs.failure + runs.timeout + runs.error;
  return (
    <Progress
      label="Runs finished"
      total={total}
      parts={[
        { name: 'succeeded', count: runs.success, state: 'success' },
        { name: 'failed', count: wrong, state: 'failure' },
        { name: 'cancelled', count: runs.cancelled, state: 'skipped' },
      ]}
    />
  );
}

function sentenceOf({ state, instants }: Outline): string {
  const { total, fired, skipped } = instants;
  const left = skipped === 0 ? '' : `, ${skipped.toLocaleString('en')} skipped because they had fired before`;
  const progress = `${fired.toLocaleString('en')} of ${total.toLocaleString('en')} instants fired${left}`;
  if (state === 'cancelled') return `Cancelled: ${progress}.`;
  if (state === 'done') return `Done: ${progress}, and all its runs have finished.`;
  return fired + skipped < total ? `${progress}.` : `${progress}; some of its runs have not finished yet.`;
}

function RunCounts({ runs, isComplete }: { readonly runs: Backfill['runs']; readonly isComplete: boolean }) {
  const { ready, ...others } = runs;
  const order = ['waiting', 'running', 'retry', 'success', 'failure', 'timeout', 'error', 'cancelled'] as const;
  return (
    <p className="counts">
      <StateCount state="active" count={ready} />
      {order.map((state) => (
        <StateCount key={state} state={state} count={others[state]} />
      ))}
      {isComplete ? null : <span className="muted">and more</span>}
    </p>
  );
}

function CancelBackfill({ job, id }: { readonly job: string; readonly id: string }) {
  return (
    <ActionDialog label="Cancel backfill" title="Cancel the backfill" kind="danger">
      {(close) => <Cancelling job={job} id={id} close={close} />}
    </ActionDialog>
  );
}

interface CancellingProps {
  readonly job: string;
  readonly id: string;
  readonly close: () => void;
}

function Cancelling({ job, id, close }: CancellingProps) {
  const cancel = useCancelBackfill(job, id);
  return (
    <ActionForm submit={() => cancel.mutate(undefined, { onSuccess: close })}>
      <p className="preview">
        It fires no more instants, and its waiting runs are cancelled. Runs that are running finish, and finished runs
        stay as they are.
      </p>
      <ActionFoot close={close} act="Cancel backfill" kind="danger" disabled={cancel.isPending}>
        <InlineFailure error={cancel.error} />
      </ActionFoot>
    </ActionForm>
  );
}
