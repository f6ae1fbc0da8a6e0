/** The state of a run or token: a shape, a word and a colour, so that each of them alone identifies the state. */
import type { State as StateName } from '../../../src/api/shapes.ts';

/** Waterwheel's endpoints use `active` for the state that is called `ready` everywhere else. */
export type Shown = StateName | 'ready';

const ready = [
  'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM8 8h.01',
  'ready to run, not yet taken by a worker',
] as const;

/** The shape on a 16 × 16 field, and what the state means to a person. */
const states: Readonly<Record<Shown, readonly [shape: string, meaning: string]>> = {
  waiting: ['M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11Z', 'waits for other tasks or for its trigger'],
  active: ready,
  ready,
  running: ['M5 3.2v9.6L12.8 8Z', 'a worker runs it now'],
  success: ['m3 8.6 3.4 3.4L13 4.5', 'ended well'],
  failure: ['m4 4 8 8M12 4l-8 8', 'ended badly'],
  timeout: ['M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM8 5v3.2l2.2 1.3', 'took longer than it may, and was ended'],
  error: ['M8 2.5 14 13H2ZM8 6.6v2.8M8 11.2h.01', 'could not be run'],
  cancelled: ['M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM4.2 11.8l7.6-7.6', 'was ended by somebody'],
  retry: ['M13 8a5 5 0 1 1-1.5-3.5M13 2.5v2.8h-2.8', 'will be tried again'],
};

/** Its name for users. */
export function wordOf(state: Shown): string {
  return state === 'active' ? 'ready' : state;
}

export function State({ state }: { readonly state: Shown }) {
  const [shape, meaning] = states[state];
  return (
    <span className="state" data-state={wordOf(state)} title={meaning}>
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d={shape} />
      </svg>
      {wordOf(state)}
    </span>
  );
}

/** The data of an SVG path on a 16 × 16 field, for pictures with many states. */
export function shapeOf(state: Shown): string {
  return states[state][0];
}

/** How many are in a state; none is a quiet dash. */
interface CountProps {
  readonly state: StateName;
  readonly count: number;
  /** The count ended at this limit: there may be more. */
  readonly upTo?: number;
}

export function StateCount({ state, count, upTo = Number.POSITIVE_INFINITY }: CountProps) {
  if (count === 0) return null;
  return (
    <span className="state count" data-state={wordOf(state)}>
      <svg className="icon" viewBox="0 0 16 16" aria-hidden="true">
        <path d={states[state][0]} />
      </svg>
      {count}
      {count >= upTo ? '+' : ''}
      <span className="unseen"> {wordOf(state)}</span>
    </span>
  );
}
