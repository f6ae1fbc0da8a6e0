/**
 * The engine contract: the only way in which the shell (gateway, hosts, courier, conductor) accesses the data of a tenant.
 * Engines of two versions may run in one process, so nothing here shares classes: only a plain `pg` pool, plain data, and
 * web-standard requests.
 */
import type { ClientBase } from 'pg';
import type { Service } from '../kernel/service.ts';
import type { BusEngine } from './bus.ts';
import type { EngineContext } from './context.ts';
import type { FlowEngine } from './flows.ts';
import type { Caller } from './roles.ts';
import type { ClaimedRun, DefinitionKey, HeldRun, LogChunk, Report, TaskDefinition } from './wire.ts';

/** Incremented when the contract changes in a way that an older shell or engine does not support. */
export const contractNumber = 4;
/** The oldest engines that this shell can work with. */
export const oldestContract = 3;

/** A ready run in a message of the broker: without params and credential, because the broker writes messages to disk (I12). */
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

/** The maximum number of runs of a set of lanes in one claim. */
export const largestClaim = 1_000;
/**
 * The maximum number of runs of a set of lanes in the commit of a report. More runs are left to a claim, so that the reports of
 * other workers do not wait for them.
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
 * A message about a run, with the worker that sent it. It has no effect if another worker holds the run. The gateway adds the
 * worker to every message; an engine of an older build ignores it.
 */
export type FromWorker<T extends HeldRun> = T & { readonly worker?: string };

export interface Reported {
  readonly applied: number;
  readonly created: number;
  /**
   * Runs for the polls that came with the reports, one list for each. If more runs may be ready, the engine has sent a hint.
   * An engine that hands out no runs with reports leaves it out.
   */
  readonly runs?: readonly (readonly ClaimedRun[])[];
}

/** A part of a scheduler whose attempts fail, or whose current attempt takes too long. */
export interface PartFault {
  /** The activity of the part: "firing triggers". */
  readonly doing: string;
  /** False: the part only cleans up, and its failure delays no trigger. */
  readonly isVital: boolean;
  /** When the first failed attempt began, by the database server's clock. */
  readonly since: Date;
  /** From then to the end of the last attempt, or until now if an attempt is under way. */
  readonly failingMs: number;
  /** How long the current attempt has made no progress, if that is long. It hangs, or has much to do. */
  readonly underWayMs?: number;
  /** The last error; null: no attempt has failed, but one is still under way. */
  readonly message: string | null;
}

export interface Scheduler extends Service {
  /** Resolves if the scheduler works; rejects with its fault. Called for an engine that has no `faults`. */
  probe(): Promise<void>;
  /** Parts that do not work now. */
  faults?(): readonly PartFault[];
}

/** The operations of gateways on a tenant's runs. */
export interface RunEngine {
  /**
   * Hands ready runs to the polls, in rank order. Returns one list per poll. If polls for the same lanes receive fewer runs than
   * they have room for, and fewer than `largestClaim`, no ready run is left.
   */
  claim(ctx: EngineContext, polls: readonly Poll[]): Promise<ClaimedRun[][]>;
  /** Applies reports. With polls, the same commit may hand out runs for them, in rank order. */
  report(ctx: EngineContext, reports: readonly FromWorker<Report>[], polls?: readonly Poll[]): Promise<Reported>;
  /** Ready runs of a lane in rank order, except those in `without`. Locks nothing and writes nothing. */
  offers(ctx: EngineContext, lane: string, most: number, without: ReadonlySet<string>): Promise<Offer[]>;
  /**
   * Hands out runs that were offered, if they are still ready under the lease of the offer. Returns one list per wish. A run in
   * several wishes is in one of the lists.
   */
  accept(ctx: EngineContext, wishes: readonly Accept[]): Promise<ClaimedRun[][]>;
  /** Renews the leases of these workers. Returns per heartbeat the runs that are lost and the runs that must be killed. */
  renew(ctx: EngineContext, beats: readonly Heartbeat[]): Promise<{ lost: HeldRun[]; cancel: HeldRun[] }[]>;
  /** Running runs that must be killed, with the workers that hold them. */
  cancellations(ctx: EngineContext): Promise<{ worker: string; run: HeldRun }[]>;
  /** Stores chunks of runs that are still under that lease. Returns the number of stored chunks. */
  logs(ctx: EngineContext, chunks: readonly FromWorker<LogChunk>[]): Promise<number>;
  /** The definitions with these keys, as far as this worker holds runs of them. An engine of an older build ignores `worker`. */
  definitions(ctx: EngineContext, keys: readonly DefinitionKey[], worker?: string): Promise<TaskDefinition[]>;
  /** The stash values that the definition of a leased run names, as base64. */
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
   * A tenant's HTTP routes. The path has no tenant prefix. A streamed response has the header `x-accel-buffering: no`: the
   * shell ends it when the caller's key is revoked.
   */
  fetch(request: Request, ctx: EngineContext, caller: Caller | undefined): Promise<Response>;
  /** Removes rows that are older than the retention. Returns the number of removed rows. */
  prune(ctx: EngineContext): Promise<number>;
  readonly runs: RunEngine;
  /** Missing in an engine without an event bus: gateways answer 503 `no_bus` for it. */
  readonly bus?: BusEngine;
  /** Missing in an engine without flows: gateways answer 501 `not_supported` for them. */
  readonly flows?: FlowEngine;
}
