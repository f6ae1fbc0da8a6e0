/**
 * The contract of a runtime:
 *
 * 1. It executes one task and reports the outcome. It never throws because of the task: an exception is a fault of the runtime
 *    itself, and the run ends in `error`.
 * 2. It passes the task's output on as fast as the sink accepts it, and no faster.
 * 3. When its signal aborts, all processes of the task end soon after (I4). A runtime that `outlives` its worker has one
 *    exception: on `draining` and `lost` it releases the task, which continues.
 *
 * The life of a runtime in a worker: it is created with the options of `runtimes.ts`, its `service` starts, `probe` returns no
 * reason against it, `adopt` succeeds. Only then does the worker take work of the kinds that it `serves`. From then on `probe` is
 * called regularly, and the worker takes no such work while it returns a reason (`worker/runtimes/runtime-watch.ts`).
 *
 * `test/conformance/runtime.test.ts` checks `run`; `worker/runtimes/runtime-watch.test.ts` checks the other members.
 */
import type { Service } from '../kernel/service.ts';
import type { Work, WorkKind } from './kinds.ts';
import type { RunFacts } from './task/facts.ts';

export type { Work, WorkKind } from './kinds.ts';
export type { CallFacts, NodeFacts, RunFacts, TaskFacts } from './task/facts.ts';

export type StreamName = 'out' | 'err';

/** Accepts a task's output. While the returned promise is pending, the task must be paused, so that memory stays limited. */
export interface Output {
  write(stream: StreamName, data: Buffer): Promise<void> | undefined;
}

/** Why a task is killed, or never begins: the reason of its abort signal. */
export type KillReason = 'timeout' | 'cancelled' | 'lost' | 'draining' | 'unserved';

export interface Task {
  readonly work: Work;
  /** Declared and documented variables. They override those that a runtime inherits from its worker. */
  readonly env: Readonly<Record<string, string>>;
  /** The names of variables with secrets. Only the task itself may be able to read their values. */
  readonly secrets: ReadonlySet<string>;
  readonly facts: RunFacts;
}

/**
 * - `failure`: caused by the task itself.
 * - `error`: it could not be executed as requested.
 * - `lost`: caused by the system that executes it, such as a restarted daemon or an evicted pod. The run is handed out again
 *   without spending an attempt; the third loss ends it in `error`.
 */
export interface Outcome {
  readonly state: 'success' | 'failure' | 'error' | 'lost';
  readonly exitCode: number | null;
  /** A message for users. */
  readonly reason: string | null;
  /** The task's result as JSON text (`task/result.ts`). */
  readonly result?: string;
  /** Why its result is not stored. */
  readonly unkept?: string;
  /** The `code` of the error that a function has thrown. */
  readonly code?: string;
}

/** The worker of a runtime. With it, a runtime marks the processes it starts, and recognizes those of an earlier incarnation. */
export interface WorkerIdentity {
  readonly worker: string;
  /** Greater than that of every earlier incarnation under the same id. */
  readonly incarnation: number;
}

export interface Runtime {
  readonly name: string;
  /** The kinds of work that it executes. The worker takes part in the lanes of these kinds. */
  readonly serves: readonly WorkKind[];
  /** Its tasks continue without the worker, and another worker that gets the run takes them over. */
  readonly outlives: boolean;
  run(task: Task, output: Output, signal: AbortSignal): Promise<Outcome>;
  /** A service that must run before the first task. */
  readonly service?: Service;
  /** Ends or takes over the tasks of earlier incarnations of this worker. Succeeds once, before the first task of this one. */
  adopt?(): Promise<void>;
  /** Why it cannot execute tasks now, as a message for users; undefined: it can. An exception counts as a reason. */
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

/** The outcome of work that the runtime does not serve. Only a bug of the worker leads to it. */
export function mismatch(runtime: string, work: Work): Outcome {
  return faulty(`the runtime "${runtime}" was given work of kind "${work.kind}"`);
}

/** The time between the soft and the hard kill. A stopping worker has less time (design §7). */
export function graceMs(signal: AbortSignal, usualMs: number): number {
  return signal.reason === 'draining' ? Math.min(usualMs, 1_000) : usualMs;
}
