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

export interface TimerMark {
  readonly execution: string;
  readonly name: string;
  readonly generation: number;
  readonly dueMs: number;
}

export interface Execution {
  readonly id: string;
  readonly rev: number;
  readonly owner: string | null;
  readonly epoch: number;
  readonly over: boolean;
  /** About how much memory it takes. */
  readonly bytes: number;
  /** Hosted functions that its flow names. A conductor that hosts most of them drives it. */
  readonly functions?: readonly string[];
  readonly sealed: unknown;
}

/** A call of a function that a conductor hosts. It is made after the commit, and repeated with the same key after a takeover. */
export interface HostedCall {
  /** `execution/nid/attempt`: the same for every repetition. */
  readonly key: string;
  readonly execution: string;
  readonly nid: string;
  readonly attempt: number;
  /** The function. */
  readonly name: string;
  readonly input: unknown;
  readonly flow: string;
}

export interface Circumstances {
  readonly nowMs: number;
  readonly seed: string;
  readonly maxMessages: number;
  /** Functions that the conductor hosts. Calls of others become trackers of the kind `function`. */
  readonly hosted: ReadonlySet<string>;
  /** Whether the time limit of this message has passed. */
  isSpent(): boolean;
  /** The link by which a person, or a receiver of a callback, answers a task. */
  link(answer: { readonly execution: string; readonly nid: string; readonly attempt: number }): string;
}

/** The result of one message. */
export interface FlowRun {
  readonly from: Execution;
  /** One revision later; the same object as `from` if the message changes nothing, such as one that is refused. */
  readonly to: Execution;
  readonly message: FlowMessage;
  readonly calls: readonly HostedCall[];
  /** Keys of calls to stop. */
  readonly stops: readonly string[];
  /** Whether work is left: the conductor sends `continue` next. */
  readonly more: boolean;
  readonly timers: {
    readonly set: readonly TimerMark[];
    readonly cleared: readonly Pick<TimerMark, 'execution' | 'name'>[];
  };
  readonly refused: { readonly code: string; readonly detail: string } | null;
  /** Functions whose calls wait since this run until a conductor that hosts them takes over. */
  readonly unhosted?: readonly string[];
  /** About how much its commit sends to the database. Without it: as much as the execution takes. */
  readonly bytes?: number;
  readonly sealed: unknown;
}

export type PutOutcome =
  | { readonly kind: 'won' }
  | { readonly kind: 'lost' }
  /** The key of a launch was used before, by this execution. */
  | { readonly kind: 'known'; readonly execution: string };

/** What a commit made for others, after which the conductor wakes them. */
export interface PutResult {
  /** One for each run, in order. */
  readonly outcomes: readonly PutOutcome[];
  /** Lanes in which runs became ready. */
  readonly lanes: readonly string[];
  /** Running runs that workers must kill now. */
  readonly cancelled: readonly { readonly worker: string; readonly run: string; readonly lease: number }[];
  /** Owners of executions to which the commit sent messages: null for new ones without an owner. */
  readonly receivers: readonly { readonly execution: string; readonly owner: string | null }[];
}

export type Blank =
  | { readonly ok: true; readonly execution: Execution }
  | { readonly ok: false; readonly code: 'no_such_flow' | 'no_such_version' | 'bad_request'; readonly detail: string };

/** A conductor, as an engine sees it. */
export interface Member {
  readonly id: string;
  /** Conductors that are alive, this one included. Executions of others may be taken over. */
  readonly living: readonly string[];
}

export interface FlowEngine {
  /** Executions by id. Those that do not exist are left out. */
  fetch(ctx: EngineContext, ids: readonly string[]): Promise<Execution[]>;
  /** New executions for launches, at revision 0, with their flow and version resolved; in the same order. */
  blank(ctx: EngineContext, launches: readonly FlowMessage[]): Promise<Blank[]>;
  execute(execution: Execution, message: FlowMessage, how: Circumstances): FlowRun;
  /**
   * Commits the runs, each execution by itself. Several runs of one execution must follow each other: all or none of them count.
   * The executions belong to `member` afterwards. Messages that `waiting` has read are deleted from the inbox, also those of runs
   * that change nothing.
   */
  put(
    ctx: EngineContext,
    runs: readonly FlowRun[],
    as: { readonly member: string; readonly commit: string; readonly atMs: number },
  ): Promise<PutResult>;
  /** The outcomes of a `put` whose answer was lost. */
  settle(ctx: EngineContext, runs: readonly FlowRun[], commit: string): Promise<PutResult>;
  /** Stores messages that no conductor takes now. A launch also makes its execution, at revision 0. */
  accept(ctx: EngineContext, messages: readonly FlowMessage[], owner: string | null): Promise<AcceptOutcome[]>;
  /**
   * Stored messages for executions of this member, of nobody, or of conductors that are not alive, the oldest first. Fewer than `limit`
   * if they are large.
   */
  waiting(ctx: EngineContext, member: Member, limit: number): Promise<FlowMessage[]>;
  /** Timers of the same executions that are due before then, the first first. */
  due(ctx: EngineContext, member: Member, beforeMs: number, limit: number): Promise<TimerMark[]>;
  /** Executions of conductors that are not alive, with calls or messages that a new owner must repeat. */
  orphans(ctx: EngineContext, member: Member, limit: number): Promise<string[]>;
  /** Executions that wait for one of these functions, which their owner does not host. */
  unhosted(ctx: EngineContext, functions: readonly string[], limit: number): Promise<string[]>;
  /** Calls under way and left-over work of an execution, for a new owner. */
  unfinished(
    execution: Execution,
    hosted: ReadonlySet<string>,
  ): { readonly calls: readonly HostedCall[]; readonly more: boolean };
}

export type AcceptOutcome =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'known'; readonly execution: string }
  | { readonly kind: 'gone' }
  | { readonly kind: 'refused'; readonly code: string; readonly detail: string };
