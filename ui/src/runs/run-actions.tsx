/** The actions on a run: cancel it, run its task again, run all failed tasks of its instant again. */
import { type RefObject, useLayoutEffect, useRef } from 'react';
import { ActivateAction } from '../actions/activate.tsx';
import { CancelRunAction } from '../actions/cancel-run.tsx';
import { RerunFailedAction } from '../actions/rerun-failed.tsx';
import { useJob } from '../job/use-job.ts';
import { useMayOperate } from '../session/session.ts';
import type { Run } from './use-runs.ts';

const failed: ReadonlySet<Run['state']> = new Set(['failure', 'timeout', 'error']);

interface Props {
  readonly run: Run;
  /** Gets the focus if the run ends while the user is about to cancel it. */
  readonly heading: RefObject<HTMLElement | null>;
}

export function RunActions({ run, heading }: Props) {
  if (!useMayOperate()) return null;
  return (
    <div className="page-actions">
      {run.finished_at === null ? <Cancel run={run} heading={heading} /> : <Again run={run} />}
    </div>
  );
}

/** It goes with the run's end, and with it button and dialog, which had the focus. */
function Cancel({ run, heading }: Props) {
  const place = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const { current: button } = place;
    return () => {
      const hadFocus = document.querySelector('dialog[open]') !== null || button?.contains(document.activeElement);
      if (!hadFocus) return;
      // once it is off the page; another dialog keeps what it has
      queueMicrotask(() => {
        if (document.activeElement === document.body) heading.current?.focus({ preventScroll: true });
      });
    };
  }, [heading]);
  return (
    <span ref={place}>
      <CancelRunAction run={run} />
    </span>
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
