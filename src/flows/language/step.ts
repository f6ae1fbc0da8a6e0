/**
 * The steps of a flow as the interpreter uses them: checked, with expressions compiled, each at its position in the tree.
 *
 * A position is the path of child indexes from the root: `0`, `0_1`, `0_1_0`. Handlers are children with a letter: `0_1_e0` is
 * the first of `on_error`, `0_1_c` is `on_cancel`, `0_1_t` is `on_timeout`, `0_1_u` is `undo`.
 */
import type { RuntimeBlock } from '../../contract/wire.ts';
import type { Compiled } from '../expression/expression.ts';

export const verbs = [
  ...(['sequence', 'parallel', 'if', 'switch', 'loop', 'each'] as const),
  ...(['task', 'call', 'wait', 'on', 'signal', 'set', 'fail', 'cancel', 'break', 'continue'] as const),
] as const;

export type Verb = (typeof verbs)[number];

/** The place that `result` or `set` writes: `f.order.state`, `v.count`, or `ret`. */
export interface Target {
  readonly root: 'f' | 'v' | 'ret';
  readonly keys: readonly string[];
}

export interface Retry {
  /** The first one included. */
  readonly maxAttempts: number;
  readonly delayMs: number;
  readonly factor: number;
  readonly capMs: number | null;
  /** The random share of each pause. */
  readonly jitter: number;
  /** Codes of errors; null: all. */
  readonly on: readonly string[] | null;
}

/** `match`: codes of errors, or a condition over `err`; null: all. */
export interface ErrorHandler {
  readonly match: { readonly codes: readonly string[] } | { readonly condition: Compiled } | null;
  readonly block: SequenceStep;
}

/** What every step may have. */
export interface Attributes {
  readonly at: string;
  /** The place in the document, for people: `steps[0].then[1]`. */
  readonly path: string;
  /** One line for people. */
  readonly title: string;
  readonly tag: string | null;
  readonly when: Compiled | null;
  /** A duration, or a moment. */
  readonly timeout: Compiled | null;
  readonly retry: Retry | null;
  readonly onError: readonly ErrorHandler[];
  readonly onCancel: SequenceStep | null;
  readonly onTimeout: SequenceStep | null;
  /** Opens a scope with these variables. */
  readonly vars: Compiled | null;
  readonly background: boolean;
  readonly result: Target | null;
  readonly undo: UndoBlock | null;
}

export interface UndoBlock {
  readonly block: SequenceStep;
  /** The variables that it reads, such as `f.order`, or `f` for all fields. */
  readonly reads: readonly string[];
}

type Missed = 'skip' | 'one' | 'all';

export type EventSpec =
  | { readonly kind: 'signal'; readonly name: Compiled; readonly match: Compiled | null }
  | { readonly kind: 'entered' | 'left'; readonly tag: string }
  | { readonly kind: 'every'; readonly every: Compiled; readonly missed: Missed }
  | { readonly kind: 'cron'; readonly cron: string; readonly timezone: string | null; readonly missed: Missed };

/** What performs a task. Without a block, it is a function that a conductor hosts under the task's name. */
export type TaskWork =
  | { readonly kind: 'hosted' }
  /** A run on a worker. The block holds expressions. `callback`: how long to wait for an answer by link; null: the run answers. */
  | {
      readonly kind: 'run';
      readonly block: Compiled;
      readonly runtime: RuntimeBlock['kind'];
      readonly callback: Compiled | null;
    }
  | { readonly kind: 'human'; readonly item: Compiled };

export interface SequenceStep extends Attributes {
  readonly verb: 'sequence';
  readonly steps: readonly Step[];
}

export interface ParallelStep extends Attributes {
  readonly verb: 'parallel';
  readonly steps: readonly Step[];
  /** How many answers end it; null: all. */
  readonly expect: number | null;
  readonly rest: 'cancel' | 'wait';
  readonly merge: Merge;
  readonly concurrent: number | null;
}

/** What becomes of fields that branches have set: the first or the last answer wins, or they are dropped. */
export type Merge = 'first' | 'last' | 'ignore';

export interface IfStep extends Attributes {
  readonly verb: 'if';
  readonly condition: Compiled;
  readonly yes: SequenceStep;
  readonly no: SequenceStep | null;
}

export interface SwitchStep extends Attributes {
  readonly verb: 'switch';
  readonly value: Compiled;
  readonly cases: ReadonlyMap<string, SequenceStep>;
  readonly otherwise: SequenceStep | null;
}

export interface LoopStep extends Attributes {
  readonly verb: 'loop';
  readonly body: SequenceStep;
  readonly while: Compiled | null;
  readonly until: Compiled | null;
  readonly every: Compiled | null;
  readonly max: number;
}

export interface EachStep extends Attributes {
  readonly verb: 'each';
  readonly items: Compiled;
  readonly body: SequenceStep;
  readonly concurrent: number;
  readonly merge: Merge;
}

export interface TaskStep extends Attributes {
  readonly verb: 'task';
  readonly name: string;
  readonly input: Compiled;
  readonly work: TaskWork;
  readonly queue: string | null;
  readonly pool: string | null;
  readonly priority: 'high' | 'normal' | 'low';
}

export interface CallStep extends Attributes {
  readonly verb: 'call';
  readonly flow: Compiled;
  readonly input: Compiled;
  readonly mode: 'child' | 'detached';
}

export interface WaitStep extends Attributes {
  readonly verb: 'wait';
  readonly for: Compiled | null;
  readonly until: Compiled | null;
  readonly on: readonly EventSpec[];
}

export interface OnStep extends Attributes {
  readonly verb: 'on';
  readonly event: EventSpec;
  readonly body: SequenceStep;
  /** Ends after so many events. */
  readonly count: number | null;
  /** Whether events are handled one after the other. */
  readonly inOrder: boolean;
}

export interface SignalStep extends Attributes {
  readonly verb: 'signal';
  readonly name: Compiled;
  /** The id of another execution; null: this one. */
  readonly to: Compiled | null;
  readonly payload: Compiled;
}

export interface SetStep extends Attributes {
  readonly verb: 'set';
  readonly assignments: readonly { readonly target: Target; readonly value: Compiled }[];
}

export interface FailStep extends Attributes {
  readonly verb: 'fail';
  readonly error: Compiled;
}

export interface CancelStep extends Attributes {
  readonly verb: 'cancel';
  readonly of: string;
  readonly kill: boolean;
}

export interface BreakStep extends Attributes {
  readonly verb: 'break' | 'continue';
  /** The tag of a loop; null: the nearest. */
  readonly of: string | null;
}

export type Step =
  | SequenceStep
  | ParallelStep
  | IfStep
  | SwitchStep
  | LoopStep
  | EachStep
  | TaskStep
  | CallStep
  | WaitStep
  | OnStep
  | SignalStep
  | SetStep
  | FailStep
  | CancelStep
  | BreakStep;

/** A flow that may be executed. */
export interface Flow {
  readonly name: string;
  readonly root: SequenceStep;
  readonly labels: Readonly<Record<string, Compiled>>;
  /** Fields that are stored encrypted and shown as dots. */
  readonly sealed: readonly string[];
  readonly byPosition: ReadonlyMap<string, Step>;
  /** The tags whose steps some step listens to. */
  readonly heardTags: ReadonlySet<string>;
}

/** The events that a step listens to. */
export function eventsOf(step: Step): readonly EventSpec[] {
  if (step.verb === 'wait') return step.on;
  return step.verb === 'on' ? [step.event] : [];
}
