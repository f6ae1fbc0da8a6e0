/**
 * The engine contract: the only way the shell (gateway, hosts, courier, conductor) touches what a tenant
 * owns. Two versions of an engine may live in one process, so nothing here shares classes: a plain `pg` pool, plain
 * data, web-standard requests.
 */
import type { ClientBase } from 'pg';
import type { Service } from '../kernel/service.ts';
import type { BusEngine } from './bus.ts';
import type { EngineContext } from './context.ts';
import type { FlowEngine } from './flows.ts';
import type { Caller } from './roles.ts';
import type { ClaimedRun, DefinitionKey, HeldRun, LogChunk, Report, TaskDefinition } from './wire.ts';

/** Changes when the shape below changes in a way that an older shell or engine could not live with. */
export const contractNumber = 4;
/** The oldest engines that this shell can work with. */
export const oldestContract = 3;

/** A ready run as a message names it: no params and no credential, which the broker would write to disk (I12). */
export interface Offer {
  readonly run: string;
  /** The run's lease before it is accepted. */
  readonly lease: number;
  /** Null: the run is about a node. */
  readonly task: string | null;
  readonly version: number;
  readonly priority: ClaimedRun['priority'];
}

/** A worker's request for runs. */
export interface Poll {
  readonly worker: string;
  readonly incarnation: number;
  readonly free: number;
  /** (runtime, queue) pairs it serves. */
  readonly lanes: readonly string[];
}

/** A worker's request for runs that it was offered. */
export interface Accept extends Pick<Poll, 'worker' | 'incarnation' | 'lanes'> {
  readonly runs: readonly Pick<Offer, 'run' | 'lease'>[];
}

/** At most this many runs of a set of lanes leave in one claim. */
export const largestClaim = 1_000;
/**
 * At most this many runs of a set of lanes leave in the commit of a report. A claim serves more of them better: reports of
 * others need not wait for it.
 */
export const largestHandOver = 64;
/**
 * Params that leave in one claim, in bytes of JSON. A claim's answer is one message; 150 runs with 3.9 MB each made one
 * that no string could hold, and some MB of JSON block the event loop of both ends. The run that crosses the limit still leaves, so
 * that a single run is never too large.
 */
export const maxClaimBytes = 1024 * 1024;
export interface Heartbeat {
  readonly worker: string;
  readonly incarnation: number;
  readonly holds: readonly HeldRun[];
}

/**
 * A message about a run, and the worker that sent it: without effect where another worker holds the run. The gateway names
 * the worker of every message; an engine of an older build ignores it.
 */
export type FromWorker<T extends HeldRun> = T & { readonly worker?: string };

export interface Reported {
  readonly applied: number;
  readonly created: number;
  /**
   * Runs for the polls that came with the reports, a list for each. If others may be ready still, the engine has sent a hint.
   * An engine that hands out none leaves it out.
   */
  readonly runs?: readonly (readonly ClaimedRun[])[];
}

/** A part of a scheduler that has not succeeded since an attempt failed, or whose attempt goes on for too long. */
export interface PartFault {
  /** What the part does: "firing triggers". */
  readonly doing: string;
  /** False: it only tidies up, and nothing fires later because of it. */
  readonly isVital: boolean;
  /** When that attempt began, by the database server's clock. */
  readonly since: Date;
  /** From then to the end of its last attempt, or until now where an attempt is under way. */
  readonly failingMs: number;
  /** How long the attempt under way has made no progress, where that is long. It hangs, or has much to do. */
  readonly underWayMs?: number;
  /** The last error; null: no attempt has failed, one goes on. */
  readonly message: string | null;
}

export interface Scheduler extends Service {
  /** Resolves when it works; rejects with what does not. Asked of an engine that has no `faults`. */
  probe(): Promise<void>;
  /** Parts that do not work now. */
  faults?(): readonly PartFault[];
}

/** What gateways do with a tenant's runs. */
export interface RunEngine {
  /**
   * Hands ready runs to the polls, in rank order; answers one list per poll. Polls for the same lanes that get fewer than
   * they have room for, and fewer than `largestClaim`, have left nothing.
   */
  claim(ctx: EngineContext, polls: readonly Poll[]): Promise<ClaimedRun[][]>;
  /** With polls, the commit that applies the reports may hand runs out for them, in rank order. */
  report(ctx: EngineContext, reports: readonly FromWorker<Report>[], polls?: readonly Poll[]): Promise<Reported>;
  /** Ready runs of a lane in rank order, without those named. Locks nothing and writes nothing. */
  offers(ctx: EngineContext, lane: string, most: number, without: ReadonlySet<string>): Promise<Offer[]>;
  /**
   * Hands out runs that were offered, where they are still ready under the lease of the offer. Answers one list per wish;
   * a run that is wished for twice is in one of them.
   */
  accept(ctx: EngineContext, wishes: readonly Accept[]): Promise<ClaimedRun[][]>;
  /** Renews the leases of these workers; answers per heartbeat which runs are lost and which are to be killed. */
  renew(ctx: EngineContext, beats: readonly Heartbeat[]): Promise<{ lost: HeldRun[]; cancel: HeldRun[] }[]>;
  /** Running runs that must be killed, with the workers that hold them. */
  cancellations(ctx: EngineContext): Promise<{ worker: string; run: HeldRun }[]>;
  /** Stores chunks of runs that are still under that lease. Returns the number of stored chunks. */
  logs(ctx: EngineContext, chunks: readonly FromWorker<LogChunk>[]): Promise<number>;
  /** The definitions with these keys, as far as this worker holds runs of them. An engine of an older build ignores `worker`. */
  definitions(ctx: EngineContext, keys: readonly DefinitionKey[], worker?: string): Promise<TaskDefinition[]>;
  /** The stash values that the definition of a leased run names; base64. */
  stash(ctx: EngineContext, run: FromWorker<HeldRun>, names: readonly string[]): Promise<Record<string, string>>;
}

/** How `pending` and `migrate` name the replacement of the SQL functions, after the names of migrations. */
export const functionsStep = 'functions';

/** `pending` rejects with a fault of this path if tables, functions, indexes or keys are missing, as during a restore. */
export const missingPartsPath = 'schema.parts';

export interface Engine {
  readonly contract: number;
  readonly version: string;
  /**
   * The names of the migrations that `migrate` would apply, and `functionsStep` if it would replace the SQL functions.
   * Rejects if `migrate` could not. Changes nothing, locks nothing.
   */
  pending(client: ClientBase): Promise<string[]>;
  /**
   * Brings a tenant's schema to this version and records it. Returns what was done, as `pending` names it. Runs in a
   * transaction of the caller, which holds `drain` exclusively (`postgres/drained.ts`).
   */
  migrate(client: ClientBase): Promise<string[]>;
  /** The one scheduler of a tenant. */
  scheduler(ctx: EngineContext): Scheduler;
  /**
   * A tenant's HTTP routes; the path carries no tenant prefix. An answer that goes on says so by `x-accel-buffering: no`: the
   * shell ends it when the caller's key is revoked.
   */
  fetch(request: Request, ctx: EngineContext, caller: Caller | undefined): Promise<Response>;
  /** Removes what retention no longer keeps; answers how many rows went. */
  prune(ctx: EngineContext): Promise<number>;
  readonly runs: RunEngine;
  /** Missing in an engine without an event bus: gateways answer 503 `no_bus` for it. */
  readonly bus?: BusEngine;
  /** Missing in an engine without flows: gateways answer 501 `not_supported` for them. */
  readonly flows?: FlowEngine;
}
