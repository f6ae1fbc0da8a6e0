/**
 * The state of an execution: plain JSON, never changed in place.
 *
 * A node is one visit of a step. Its phases:
 *
 * | phase | meaning | leaves when |
 * |---|---|---|
 * | `run` | the step is at work, or waits for its children | it completes, fails, or is cancelled |
 * | `backoff` | it failed and pauses before the next attempt | the pause is over |
 * | `close` | its children and its work are being ended; `why` says what follows | the last one has ended |
 * | `undo` | compensations of completed steps inside it run, last first | none is left |
 * | `handle` | `on_error`, `on_timeout` or `on_cancel` runs | that block has ended |
 * | `incident` | it failed, and no handler fits | a person retries, skips or cancels it |
 */
import type { Json, JsonObject } from '../json.ts';

export interface FlowError {
  readonly code: string;
  readonly message: string;
  readonly data: Json;
  /** The node that failed first. */
  readonly node: string;
  /** Raised by `fail`: without a handler the execution fails, and no person is asked. */
  readonly isFinal: boolean;
}

type Phase = 'run' | 'backoff' | 'close' | 'undo' | 'handle' | 'incident';

/** What a node that closes comes to. `left`: a `break` or `continue` inside it leaves it, along these nodes. */
export type Why =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly error: FlowError }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'kill' }
  | { readonly kind: 'left'; readonly path: readonly string[] };

export type Role = 'main' | 'background' | 'handler' | 'undo';

interface TimerState {
  readonly generation: number;
  readonly dueMs: number;
  /** Of a recurring timer: the time that it stands for. */
  readonly plannedMs?: number;
}

/** A compensation. Its variables are stored apart, because the node is stored anew with every change. */
export interface UndoEntry {
  /** The position of the block. */
  readonly at: string;
  /** In the store: `{f, v}`. */
  readonly key: string;
}

/** Fields that a branch has set, and its last result. They are seen inside the branch only. */
export interface Frame {
  readonly f: JsonObject;
  readonly ret: Json;
}

export interface FlowNode {
  /** The position of its step. */
  readonly at: string;
  readonly parent: string | null;
  readonly role: Role;
  readonly phase: Phase;
  readonly since: number;
  /** 1 is the first. */
  readonly attempt: number;
  readonly children: readonly string[];
  readonly why?: Why;
  /** Of an incident. */
  readonly error?: FlowError;
  /** `err`, `event`, `it`, `index` and `key`, seen by the steps inside. */
  readonly locals?: JsonObject;
  readonly vars?: JsonObject;
  readonly frame?: Frame;
  readonly timers?: Readonly<Record<string, TimerState>>;
  /** Of completed steps inside it, in the order of their completion. */
  readonly undo?: readonly UndoEntry[];
  /** What its verb remembers. */
  readonly memory?: JsonObject;
}

export interface EarlySignal {
  readonly name: string;
  readonly payload: Json;
  readonly atMs: number;
  /** Of the payload as JSON, about. */
  readonly chars: number;
}

export type Ending =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly error: FlowError }
  | { readonly kind: 'cancelled' };

/** How the last visit of a step ended. `skipped`: its `when` did not hold. `left`: by a `break` or `continue`. */
export type EndedAs = 'done' | 'skipped' | 'failed' | 'cancelled' | 'left';

export interface Counters {
  readonly visits: number;
  readonly generations: number;
}

export interface FlowState {
  readonly format: 1;
  readonly input: Json;
  readonly f: JsonObject;
  readonly ret: Json;
  readonly nodes: Readonly<Record<string, FlowNode>>;
  /** Values of nodes that are kept apart, because a node is stored anew with every change: items and results of `each`. */
  readonly store: JsonObject;
  /** Signals that nothing waited for yet, oldest first. */
  readonly early: readonly EarlySignal[];
  /** Inner messages that a run has left for the next one. */
  readonly left: readonly Inner[];
  /** Ids of signals and operations that were taken, oldest first. */
  readonly seen: readonly { readonly id: string; readonly atMs: number }[];
  /** By position: how the steps that have ended did so the last time. Only views of people read it. */
  readonly ended: Readonly<Record<string, EndedAs>>;
  readonly counters: Counters;
  readonly isPaused: boolean;
  readonly ending: Ending | null;
}

/** How a child has ended. `left`: by a `break` or `continue`. */
export type Outcome =
  | { readonly kind: 'done' | 'cancelled' | 'left' }
  | { readonly kind: 'failed'; readonly error: FlowError };

/** Messages between the nodes of an execution, and those that wait while it is paused. */
export type Inner =
  | { readonly do: 'enter'; readonly nid: string }
  | {
      readonly do: 'ended';
      readonly parent: string;
      readonly nid: string;
      readonly at: string;
      readonly role: Role;
      readonly outcome: Outcome;
      readonly frame: Frame | null;
      readonly locals: JsonObject | null;
    }
  | { readonly do: 'close'; readonly nid: string; readonly why: Why }
  | { readonly do: 'hear'; readonly name: string; readonly payload: Json }
  | { readonly do: 'take'; readonly body: MessageBody };

export interface TaskAnswer {
  readonly nid: string;
  readonly attempt: number;
  readonly outcome:
    | { readonly kind: 'done'; readonly result: Json }
    | { readonly kind: 'failed'; readonly code: string; readonly message: string; readonly data: Json }
    | { readonly kind: 'cancelled' };
}

export type Operation =
  | { readonly action: 'cancel' | 'kill'; readonly nid: string | null }
  | { readonly action: 'pause' | 'resume' }
  | { readonly action: 'retry'; readonly nid: string }
  | { readonly action: 'skip'; readonly nid: string; readonly result: Json }
  | { readonly action: 'fields'; readonly fields: JsonObject }
  | {
      readonly action: 'swap';
      /** The whole new document. */
      readonly document: JsonObject;
      /** Positions of the replaced steps, the same in both documents. */
      readonly at: readonly string[];
      /** Stops tasks that are under way inside of them. */
      readonly force: boolean;
      readonly fields?: JsonObject;
    };

/** The state in which an execution begins that is the fork of another one. */
export interface Fork {
  readonly state: FlowState;
  /** Positions of replaced steps. */
  readonly at?: readonly string[];
}

/** What comes from outside. */
export type MessageBody =
  | { readonly point: 'launch'; readonly input: Json; readonly fork?: Fork }
  | ({ readonly point: 'answer' } & TaskAnswer)
  | { readonly point: 'timer'; readonly name: string; readonly generation: number }
  | { readonly point: 'signal'; readonly name: string; readonly payload: Json }
  | { readonly point: 'operate'; readonly operation: Operation }
  | { readonly point: 'continue' };

/** Why a message has no effect. */
export interface Refusal {
  readonly code:
    | 'over'
    | 'no_such_node'
    | 'no_incident'
    | 'too_late'
    | 'too_early'
    | 'not_paused'
    | 'paused'
    | 'too_many_signals'
    | 'bad_document'
    | 'task_running'
    | 'undo_recorded';
  readonly detail: string;
}

export const blankState: FlowState = {
  format: 1,
  input: null,
  f: {},
  ret: null,
  nodes: {},
  store: {},
  early: [],
  left: [],
  seen: [],
  ended: {},
  counters: { visits: 0, generations: 0 },
  isPaused: false,
  ending: null,
};

export const rootAt = '0';
