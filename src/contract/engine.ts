/**
 * The engine contract (design §4): the only way the shell (gateway, hosts, courier, conductor) touches what a tenant
 * owns. Two versions of an engine may live in one process, so nothing here shares classes: a plain `pg` pool, plain
 * data, web-standard requests.
 */
import type { ClientBase, Pool } from 'pg';
import type { Log } from '../kernel/log.ts';
import type { Service } from '../kernel/service.ts';
import type { Telemetry } from '../kernel/telemetry.ts';
import type { Time } from '../kernel/time.ts';
import type { LocalTasks } from './local-tasks.ts';
import type { Caller } from './roles.ts';
import type { ClaimedRun, DefinitionKey, HeldRun, Invalidation, LogChunk, Report, TaskDefinition } from './wire.ts';

/** Changes when the shape below changes in a way that an older shell or engine could not live with. */
export const contractNumber = 3;
/** The oldest engines that this shell can work with. */
export const oldestContract = 3;

interface Tenant {
  readonly id: string;
  readonly name: string;
}

/** What wake-ups are about. They are hints: slow sweeps find what a lost one missed. */
export type WakeKind = 'ready' | 'triggers' | 'tokens' | 'retries' | 'events' | 'logs' | 'signals';

export interface Wake {
  /** After a commit: tells this process at once and the others by one coalesced NOTIFY. */
  send(tenantId: string, kind: WakeKind): void;
  /** Returns how to stop listening. */
  on(tenantId: string, kind: WakeKind, listener: () => void): () => void;
}

/** Carries offers, results and broadcasts between scheduler, API and workers. Every message names tenant and lease. */
export interface Broker {
  /** Runs have become ready: in these lanes, or in any where none are named. */
  offer(tenant: Tenant, lanes?: readonly string[]): void;
  /** Results that reach the scheduler through the broker; where workers report over HTTP, none ever do. */
  results(tenant: Tenant, handler: (reports: readonly Report[]) => Promise<void>): Service;
  /** Triggers of these jobs have changed. */
  update(tenant: Tenant, jobIds: readonly string[]): void;
  broadcast(invalidation: Invalidation): void;
  cancel(run: HeldRun): void;
}

/** Encrypts what is at rest and signs what tasks carry (I12). */
export interface Secrets {
  encrypt(plain: Buffer): Buffer;
  decrypt(sealed: Buffer): Buffer;
  signRun(run: HeldRun): string;
}

/** A worker or scheduler as the control database knows it; shared by all tenants, so not the engine's own. */
export interface WorkerInfo {
  readonly id: string;
  readonly name: string;
  readonly addr: string;
  readonly version: string;
  readonly lastSeenAt: Date;
  readonly running: number;
  readonly places: number;
  readonly runtimes: readonly string[];
  readonly queues: readonly string[];
}

export interface SchedulerInfo {
  readonly id: string;
  readonly version: string;
  readonly lastSeenAt: Date;
  readonly queuedTriggers: number;
  readonly nextTriggerId: string | null;
}

/** What a scheduler says of itself. */
export interface SchedulerStatus {
  readonly queuedTriggers: number;
  readonly nextTriggerId: string | null;
  /** Some of the next triggers to fire, and of those that are being fired; the first comes first. */
  readonly nextTriggers: readonly string[];
  /** Runs were ready when it last looked. */
  readonly ready: boolean;
}

export interface Directory {
  workers(seenSince: Date): Promise<WorkerInfo[]>;
  schedulers(seenSince: Date): Promise<SchedulerInfo[]>;
  /** The next triggers as the tenant's scheduler said last, though it may be gone. */
  nextTriggers(): Promise<readonly string[]>;
  /** Told by a scheduler about itself. */
  noteScheduler(status: SchedulerStatus): void;
  /** Since when some gateway has been serving without a break: leases run out only while heartbeats can arrive. */
  servingSince(): Promise<Date | undefined>;
}

/** How much of the past is kept; null: for ever. A job's document may say otherwise for its runs. */
export interface Retention {
  /** Of runs after their end, with all that hangs on them, and of events. */
  readonly ageMs: number | null;
  /** The newest finished runs of each job. */
  readonly runs: number | null;
  /** The newest events. */
  readonly events: number | null;
}

/** What differs between installations, already parsed. */
interface EngineSettings {
  /** How people and tasks reach the API, where somebody has said it. */
  readonly publicUrl: string | undefined;
  readonly leaseMs: number;
  readonly retention: Retention;
  /** Which tenants may run `process` and `function` tasks; a shell of an older build does not say, and means all. */
  readonly localTasks?: LocalTasks;
}

export interface EngineContext {
  readonly tenant: Tenant;
  readonly pool: Pool;
  readonly broker: Broker;
  readonly wake: Wake;
  readonly time: Time;
  readonly log: Log;
  readonly telemetry: Telemetry;
  readonly settings: EngineSettings;
  readonly directory: Directory;
  readonly secrets: Secrets;
  /**
   * Does work that can wait (retention, vacuum) when it is its turn: a host does a few pieces of work at a time. Undefined
   * when the scheduler is to end first.
   */
  housekeeping<T>(reason: string, work: () => Promise<T>): Promise<T | undefined>;
}

/** One worker's wish for work. */
export interface Poll {
  readonly worker: string;
  readonly incarnation: number;
  readonly free: number;
  /** (runtime, queue) pairs it serves. */
  readonly lanes: readonly string[];
}

/** At most this many runs of a set of lanes leave in one claim. */
export const largestClaim = 1_000;

export interface Heartbeat {
  readonly worker: string;
  readonly incarnation: number;
  readonly holds: readonly HeldRun[];
}

/** A run, and the worker that says it holds it. An engine of an older build does not ask which. */
export interface RunOfWorker extends HeldRun {
  readonly worker?: string;
}

export interface Reported {
  readonly applied: number;
  readonly created: number;
}

/** A part of a scheduler that has failed at every attempt since its last success. */
export interface PartFault {
  /** What the part does: "firing triggers". */
  readonly doing: string;
  /** False: it only tidies up, and nothing fires later because of it. */
  readonly isVital: boolean;
  /** Its first failure, by the database server's clock. */
  readonly since: Date;
  /** From its first failure to its last. */
  readonly failingMs: number;
  /** The last error. */
  readonly message: string;
}

export interface Scheduler extends Service {
  /** Resolves when each of its parts has come round lately, and its database answers; rejects with what is stuck. */
  probe(): Promise<void>;
  /** Parts that fail now. An engine without this reports none. */
  faults?(): readonly PartFault[];
}

export interface Engine {
  readonly contract: number;
  readonly version: string;
  /** The names of the migrations that `migrate` would apply; rejects where it could not. Changes nothing, locks nothing. */
  pending(client: ClientBase): Promise<string[]>;
  /**
   * Brings a tenant's schema to this version and records it; answers the names of what was applied. In a transaction of the
   * caller's, which holds `drain` exclusively (`postgres/drained.ts`).
   */
  migrate(client: ClientBase): Promise<string[]>;
  /** The one scheduler of a tenant. */
  scheduler(ctx: EngineContext): Scheduler;
  /**
   * A tenant's HTTP routes; the path carries no tenant prefix. An answer that goes on says so by `x-accel-buffering: no`: the
   * shell ends it when the caller's key is revoked.
   */
  fetch(request: Request, ctx: EngineContext, caller: Caller | undefined): Promise<Response>;
  /**
   * Hands ready runs to the polls, in rank order; answers one list per poll. Polls for the same lanes that get fewer than
   * they have room for, and fewer than `largestClaim`, have left nothing.
   */
  claim(ctx: EngineContext, polls: readonly Poll[]): Promise<ClaimedRun[][]>;
  report(ctx: EngineContext, reports: readonly Report[]): Promise<Reported>;
  /** Renews the leases of these workers; answers per heartbeat which runs are lost and which are to be killed. */
  renew(ctx: EngineContext, beats: readonly Heartbeat[]): Promise<{ lost: HeldRun[]; cancel: HeldRun[] }[]>;
  /** Running runs that are to be killed, and who holds them. */
  cancellations(ctx: EngineContext): Promise<{ worker: string; run: HeldRun }[]>;
  /** Keeps chunks of runs that are still leased so; answers how many were kept. */
  logs(ctx: EngineContext, chunks: readonly LogChunk[]): Promise<number>;
  /** Of those keys, the definitions that runs are made of which this worker holds. An engine of an older build ignores it. */
  definitions(ctx: EngineContext, keys: readonly DefinitionKey[], worker?: string): Promise<TaskDefinition[]>;
  /** The stash values that the definition of a leased run names; base64. */
  stash(ctx: EngineContext, run: RunOfWorker, names: readonly string[]): Promise<Record<string, string>>;
  /** Removes what retention no longer keeps; answers how many rows went. */
  prune(ctx: EngineContext): Promise<number>;
}
