/**
 * What a runtime promises: it executes one task and says how it ended, it sends the task's output on as fast as the
 * sink takes it and no faster, and when its signal aborts nothing of the task is left soon after (I4).
 *
 * A runtime never throws for something the task did; what it throws is its own fault, and becomes an `error`.
 */
import type { RuntimeName } from '../contract/wire.ts';
import type { Service } from '../kernel/service.ts';

export type StreamName = 'out' | 'err';

/** Takes a task's output. While the returned promise is pending the task is to be held up, so memory stays bounded. */
export interface Output {
  write(stream: StreamName, data: Buffer): Promise<void> | undefined;
}

/** Why a task is killed, or never begun: the reason of the signal that its runtime is given. */
export type KillReason = 'timeout' | 'cancelled' | 'lost' | 'draining' | 'unserved';

/** The part of a definition that says what to execute, with every template expanded. */
export type Work =
  | { readonly kind: 'none' }
  | { readonly kind: 'function'; readonly name: string; readonly input: unknown }
  | { readonly kind: 'process'; readonly command: readonly string[]; readonly cwd: string | null }
  | { readonly kind: 'docker'; readonly image: string; readonly args: readonly string[] };

interface Named {
  readonly id: string;
  readonly name: string;
}

/** What a task may know about its own run, whatever that is about. */
interface HandOutFacts {
  /** Its name. */
  readonly tenant: string;
  readonly run: string;
  readonly lease: number;
  readonly attempt: number;
  readonly priority: string;
  readonly params: Readonly<Record<string, unknown>>;
  /** Where the task reaches the API, and with what. */
  readonly url: string;
  readonly credential: string;
  /** The same for every hand-out of a run, so that an outside world that saw a start twice can tell. */
  readonly idempotencyKey: string;
}

/** A run of a job's task, at an instant. */
export interface TaskFacts extends HandOutFacts {
  /** ISO 8601, UTC. */
  readonly instant: string;
  readonly task: Named;
  readonly job: Named;
  readonly project: Named;
  readonly node: null;
}

/** A run of a node of an execution. */
export interface NodeFacts extends HandOutFacts {
  readonly instant: null;
  readonly task: null;
  readonly job: null;
  readonly project: Named | null;
  readonly node: Named & { readonly execution: string };
}

export type RunFacts = TaskFacts | NodeFacts;

export interface Task {
  readonly work: Work;
  /** Declared and documented variables; what a runtime inherits from its worker comes beneath them. */
  readonly env: Readonly<Record<string, string>>;
  readonly facts: RunFacts;
}

/** `failure` is the task's own doing, `error` means that it could not be executed as asked. */
export interface Outcome {
  readonly state: 'success' | 'failure' | 'error';
  readonly exitCode: number | null;
  /** For people. */
  readonly reason: string | null;
  /** What the task made, as JSON text (`task/result.ts`). */
  readonly result?: string;
  /** Why what it made is not kept. */
  readonly unkept?: string;
}

export interface Runtime {
  readonly name: RuntimeName;
  run(task: Task, output: Output, signal: AbortSignal): Promise<Outcome>;
  /** What must be running before the first task is. */
  readonly service?: Service;
}

export const success: Outcome = { state: 'success', exitCode: null, reason: null };

export function failed(reason: string, exitCode: number | null = null): Outcome {
  return { state: 'failure', exitCode, reason };
}

export function faulty(reason: string): Outcome {
  return { state: 'error', exitCode: null, reason };
}

/** Given work of another kind than its own; only a mistake in the runtimes' table does that. */
export function mismatch(runtime: RuntimeName, work: Work): Outcome {
  return faulty(`the runtime "${runtime}" was given work of kind "${work.kind}"`);
}

/** How long a task has between the soft and the hard kill. A leaving worker has less time to give (design §7). */
export function graceMs(signal: AbortSignal, usualMs: number): number {
  return signal.reason === 'draining' ? Math.min(usualMs, 1_000) : usualMs;
}
