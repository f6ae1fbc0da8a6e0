/**
 * What a runtime promises:
 *
 * 1. It executes one task and reports how the task ended. It never throws for something that the task did: an exception is
 *    the runtime's own fault, and the run ends in `error`.
 * 2. It passes the task's output on as fast as the sink takes it and no faster.
 * 3. When its signal aborts, nothing of the task is left soon after (I4). A runtime that `outlives` its worker makes one
 *    exception: on `draining` and `lost` it lets go of the task, which goes on.
 *
 * The life of a runtime in a worker: it is made with the options of `runtimes.ts`, its `service` starts, `probe` gives no
 * reason against it, `adopt` succeeds. Only then does the worker take work of the kinds it `serves`. From then on `probe` is
 * asked regularly, and the worker takes no such work while a reason is given (`worker/runtimes/runtime-watch.ts`).
 *
 * `test/conformance/runtime.test.ts` checks `run`; `worker/runtimes/runtime-watch.test.ts` checks the other members.
 */
import type { Service } from '../kernel/service.ts';
import type { Work, WorkKind } from './kinds.ts';
import type { RunFacts } from './task/facts.ts';

export type { Work, WorkKind } from './kinds.ts';
export type { NodeFacts, RunFacts, TaskFacts } from './task/facts.ts';

export type StreamName = 'out' | 'err';

/** Takes a task's output. While the returned promise is pending the task is to be held up, so memory stays bounded. */
export interface Output {
  write(stream: StreamName, data: Buffer): Promise<void> | undefined;
}

/** Why a task is killed, or never begun: the reason of the signal that its runtime is given. */
export type KillReason = 'timeout' | 'cancelled' | 'lost' | 'draining' | 'unserved';

export interface Task {
  readonly work: Work;
  /** Declared and documented variables; what a runtime inherits from its worker comes beneath them. */
  readonly env: Readonly<Record<string, string>>;
  /** The names of variables that hold secrets. Nothing but the task itself may be able to read their values. */
  readonly secrets: ReadonlySet<string>;
  readonly facts: RunFacts;
}

/**
 * - `failure`: the task's own doing.
 * - `error`: it could not be executed as asked.
 * - `lost`: the doing of what executes it, such as a restarted daemon or an evicted pod. The run is handed out again without
 *   spending an attempt; the third loss ends it in `error`.
 */
export interface Outcome {
  readonly state: 'success' | 'failure' | 'error' | 'lost';
  readonly exitCode: number | null;
  /** For people. */
  readonly reason: string | null;
  /** What the task made, as JSON text (`task/result.ts`). */
  readonly result?: string;
  /** Why what it made is not kept. */
  readonly unkept?: string;
}

/** Which worker a runtime belongs to, so that it can mark what it starts and recognise what an earlier life left. */
export interface WorkerIdentity {
  readonly worker: string;
  /** Greater than that of every earlier life under the same id. */
  readonly incarnation: number;
}

export interface Runtime {
  readonly name: string;
  /** The kinds of work that it executes. The worker takes part in the lanes of these kinds. */
  readonly serves: readonly WorkKind[];
  /** Its tasks go on without the worker, and another worker that is given the run takes them over. */
  readonly outlives: boolean;
  run(task: Task, output: Output, signal: AbortSignal): Promise<Outcome>;
  /** What must be running before the first task is. */
  readonly service?: Service;
  /** Ends or takes over what an earlier life of this worker left. Succeeds once, before the first task of this life. */
  adopt?(): Promise<void>;
  /** Why it cannot execute tasks now, for people; undefined if it can. To throw is to give a reason, too. */
  probe?(): Promise<string | undefined>;
}

export const success: Outcome = { state: 'success', exitCode: null, reason: null };

export function failed(reason: string, exitCode: number | null = null): Outcome {
  return { state: 'failure', exitCode, reason };
}

export function faulty(reason: string): Outcome {
  return { state: 'error', exitCode: null, reason };
}

export function lost(reason: string): Outcome {
  return { state: 'lost', exitCode: null, reason };
}

/** The outcome of work that the runtime does not serve; only a mistake in the worker leads to it. */
export function mismatch(runtime: string, work: Work): Outcome {
  return faulty(`the runtime "${runtime}" was given work of kind "${work.kind}"`);
}

/** How long a task has between the soft and the hard kill. A leaving worker has less time to give (design §7). */
export function graceMs(signal: AbortSignal, usualMs: number): number {
  return signal.reason === 'draining' ? Math.min(usualMs, 1_000) : usualMs;
}
