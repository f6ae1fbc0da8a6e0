/** The status of an execution, and the state of one of its steps: a shape, a word and a colour, each of which identifies it. */
import type { ExecutionStatus } from '../../../src/api/executions/shapes.ts';
import type { RowState } from './tree/tree-model.ts';

/** The states of runs, whose colours are used. */
type Tone = 'waiting' | 'running' | 'success' | 'failure' | 'timeout' | 'error' | 'cancelled' | 'retry';

const ring = 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11Z';
const shapes = {
  clock: `${ring}M8 5v3.2l2.2 1.3`,
  play: 'M5 3.2v9.6L12.8 8Z',
  bars: 'M5.5 3.5v9M10.5 3.5v9',
  alarm: 'M8 2.5 14 13H2ZM8 6.6v2.8M8 11.2h.01',
  tick: 'm3 8.6 3.4 3.4L13 4.5',
  cross: 'm4 4 8 8M12 4l-8 8',
  barred: `${ring}M4.2 11.8l7.6-7.6`,
  ring,
  dash: 'M4 8h8',
  again: 'M13 8a5 5 0 1 1-1.5-3.5M13 2.5v2.8h-2.8',
  back: 'M6 3.5 2.5 7 6 10.5M2.5 7h7a4 4 0 0 1 0 6.5H7',
} as const;

type Look = readonly [tone: Tone, shape: string, meaning: string];

const statuses: Readonly<Record<ExecutionStatus, Look>> = {
  running: ['running', shapes.play, 'steps are at work'],
  waiting: ['waiting', shapes.clock, 'waits for a time, a signal or a person'],
  paused: ['timeout', shapes.bars, 'begins nothing until it is resumed'],
  incident: ['failure', shapes.alarm, 'a step has failed and waits for an operator'],
  done: ['success', shapes.tick, 'has ended well'],
  failed: ['failure', shapes.cross, 'has failed'],
  cancelled: ['cancelled', shapes.barred, 'was cancelled'],
};

const states: Readonly<Record<RowState, Look>> = {
  idle: ['waiting', shapes.ring, 'has not begun'],
  running: statuses.running,
  waiting: ['waiting', shapes.clock, 'waits for a time, a signal, a person or another execution'],
  retry: ['retry', shapes.again, 'failed, and pauses before the next attempt'],
  closing: ['cancelled', shapes.barred, 'is being ended'],
  undoing: ['retry', shapes.back, 'completed steps inside it are being undone'],
  handling: ['retry', shapes.back, 'on_error, on_timeout or on_cancel is at work'],
  incident: ['failure', shapes.alarm, 'has failed and waits for an operator'],
  done: ['success', shapes.tick, 'has ended'],
  failed: ['failure', shapes.cross, 'has failed'],
  cancelled: ['cancelled', shapes.barred, 'was cancelled'],
  skipped: ['cancelled', shapes.dash, 'was not needed'],
};

/** Which colour of the runs' states a step has. */
export function toneOf(state: RowState): string {
  return states[state][0];
}

function Mark({ shape }: { readonly shape: string }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={shape} />
    </svg>
  );
}

export function Status({ status }: { readonly status: ExecutionStatus }) {
  const [tone, shape, meaning] = statuses[status];
  return (
    <span className="state" data-state={tone} title={meaning}>
      <Mark shape={shape} />
      {status}
    </span>
  );
}

export function StepStateMark({ state }: { readonly state: RowState }) {
  const [tone, shape, meaning] = states[state];
  return (
    <span className="state step-state" data-state={tone} data-step={state} title={meaning}>
      <Mark shape={shape} />
      <span className="unseen">{state}</span>
    </span>
  );
}

export function StepStateWord({ state }: { readonly state: RowState }) {
  const [tone, shape, meaning] = states[state];
  return (
    <span className="state" data-state={tone} title={meaning}>
      <Mark shape={shape} />
      {state === 'idle' ? 'not begun' : state}
    </span>
  );
}

/** How many have a status; none shows nothing. */
export function StatusCount({ status, count }: { readonly status: ExecutionStatus; readonly count: number }) {
  if (count === 0) return null;
  const [tone, shape] = statuses[status];
  return (
    <span className="state count" data-state={tone}>
      <Mark shape={shape} />
      {count.toLocaleString('en')}
      <span className="unseen"> {status}</span>
    </span>
  );
}
