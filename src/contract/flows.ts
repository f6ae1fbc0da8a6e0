/**
 * The part of the engine contract that drives flows. A conductor fetches executions, lets the engine interpret one message
 * after the other, and commits many results at once. Only the engine reads `sealed` fields.
 *
 * 1. `execute` is pure and never throws. No effect leaves the process before `put` has committed it.
 * 2. `put` compares and sets the revision of each execution separately. An execution that loses changes nothing.
 * 3. All data is plain, so that a conductor works with engines of other releases.
 */
import type { EngineContext } from './context.ts';
import type { FlowMessage } from './flow-messages.ts';

interface TimerMark {
  readonly execution: string;
  readonly name: string;
  readonly generation: number;
  readonly dueMs: number;
}

interface Execution {
  readonly id: string;
  readonly rev: number;
  readonly owner: string | null;
  readonly epoch: number;
  readonly over: boolean;
  readonly bytes: number;
  readonly sealed: unknown;
}

/** A call of a function that a conductor hosts. It is made after the commit, and repeated with the same key after a takeover. */
interface HostedCall {
  readonly key: string;
  readonly execution: string;
  readonly epoch: number;
  readonly nid: string;
  readonly attempt: number;
  readonly name: string;
  readonly input: unknown;
  readonly timeoutMs: number | null;
}

interface Circumstances {
  readonly nowMs: number;
  readonly seed: string;
  readonly maxMessages: number;
  /** Functions that the conductor hosts. */
  readonly hosted: ReadonlySet<string>;
  /** Whether the time limit of this message has passed. */
  spent(): boolean;
}

/** The result of one message. */
interface FlowRun {
  readonly from: Execution;
  readonly to: Execution;
  readonly message: FlowMessage;
  readonly calls: readonly HostedCall[];
  /** Keys of calls to stop. */
  readonly stops: readonly string[];
  /** Whether work is left for another message. */
  readonly more: boolean;
  readonly timers: { readonly set: readonly TimerMark[]; readonly cleared: readonly TimerMark[] };
  /** Lanes in which the commit makes runs ready. */
  readonly lanes: readonly string[];
  /** Executions to which the commit sends messages. */
  readonly receivers: readonly string[];
  readonly refused: { readonly code: string; readonly detail: string } | null;
  readonly sealed: unknown;
}

type PutOutcome =
  | { readonly kind: 'won' }
  | { readonly kind: 'lost' }
  /** The key of a launch was used before, by this execution. */
  | { readonly kind: 'known'; readonly execution: string };

export interface FlowEngine {
  fetch(ctx: EngineContext, ids: readonly string[]): Promise<Execution[]>;
  /** The new execution of a launch, at revision 0, with its flow and version resolved. */
  blank(ctx: EngineContext, launch: FlowMessage): Promise<Execution>;
  execute(execution: Execution, message: FlowMessage, how: Circumstances): FlowRun;
  put(
    ctx: EngineContext,
    runs: readonly FlowRun[],
    as: { readonly member: string; readonly commit: string; readonly atMs: number },
  ): Promise<PutOutcome[]>;
  /** The outcome of a `put` whose answer was lost. */
  settle(ctx: EngineContext, runs: readonly FlowRun[], commit: string): Promise<PutOutcome[]>;
  /** Stores messages that no conductor takes now. */
  accept(ctx: EngineContext, messages: readonly FlowMessage[], owner: string | null): Promise<void>;
  waiting(
    ctx: EngineContext,
    limit: number,
  ): Promise<{ readonly message: FlowMessage; readonly owner: string | null }[]>;
  due(ctx: EngineContext, beforeMs: number, limit: number): Promise<(TimerMark & { readonly owner: string | null })[]>;
  /** Calls that a new owner repeats. */
  unfinished(execution: Execution): HostedCall[];
}
