/** The context that the shell passes to an engine for one tenant: pool, hints, clock, log, settings, and the installation. */
import type { Pool } from 'pg';
import type { Log } from '../kernel/log.ts';
import type { Telemetry } from '../kernel/telemetry.ts';
import type { Time } from '../kernel/time.ts';
import type { BusSettings, CourierInfo, RedisPort } from './bus-context.ts';
import type { Hints } from './channels.ts';
import type { Conductors } from './flow-messages.ts';
import type { LocalTasks } from './local-tasks.ts';
import type { HeldRun } from './wire.ts';

interface Tenant {
  readonly id: string;
  readonly name: string;
}

/** Encrypts values at rest, and signs the credentials of tasks (I12). */
export interface Secrets {
  encrypt(plain: Buffer): Buffer;
  decrypt(sealed: Buffer): Buffer;
  signRun(run: HeldRun): string;
  /** A token with these claims, for a link that works without a key. */
  signLink(claims: string): string;
  /** The claims of a token; undefined: it is forged. */
  verifyLink(token: string): string | undefined;
}

/** A worker or scheduler as recorded in the control database. All tenants share them, so no engine owns them. */
export interface WorkerInfo {
  readonly id: string;
  readonly name: string;
  readonly addr: string;
  readonly version: string;
  readonly lastSeenAt: Date;
  readonly running: number;
  readonly places: number;
  readonly runtimes: readonly string[];
  /** Why it does not take some kinds of work now, by kind. A shell of an older build does not know. */
  readonly unavailable?: Readonly<Record<string, string>>;
  readonly queues: readonly string[];
}

export interface SchedulerInfo {
  readonly id: string;
  readonly version: string;
  readonly lastSeenAt: Date;
  readonly queuedTriggers: number;
  readonly nextTriggerId: string | null;
}

/** The status that a scheduler reports about itself. */
export interface SchedulerStatus {
  readonly queuedTriggers: number;
  readonly nextTriggerId: string | null;
  /** Some of the next triggers to fire, including those that are being fired, in order. */
  readonly nextTriggers: readonly string[];
  /** Whether runs were ready at the last check. */
  readonly ready: boolean;
  /** Work that waits for conductors: messages in the inbox, and the next timer. An engine without flows leaves it out. */
  readonly flows?: { readonly inbox: boolean; readonly nextDueAt: Date | null };
}

/** A conductor that is alive. */
export interface ConductorInfo {
  readonly id: string;
  readonly machine: string;
  readonly version: string;
  readonly functions: readonly string[];
  readonly lastSeenAt: Date;
}

export interface WorkerPage {
  readonly workers: readonly WorkerInfo[];
  /** The `cursor` of the next page; null: there is none. */
  readonly next: string | null;
}

export interface Directory {
  /** Workers heard of since then, by name. If there are very many, only the most recent ones. */
  workers(seenSince: Date): Promise<WorkerInfo[]>;
  /** All workers heard of since then, by name, a page at a time. */
  workerPage(page: { since: Date; cursor: string | undefined; limit: number }): Promise<WorkerPage>;
  worker(id: string): Promise<WorkerInfo | undefined>;
  /** Ids of the workers that call with this key. Missing in a shell of an older build. */
  workersOfKey?(keyId: string): Promise<readonly string[]>;
  schedulers(seenSince: Date): Promise<SchedulerInfo[]>;
  /** The next triggers, as last reported by the tenant's scheduler, which may be gone. */
  nextTriggers(): Promise<readonly string[]>;
  /** Records the status of the calling scheduler. */
  noteScheduler(status: SchedulerStatus): void;
  /** The start of the time in which a gateway has been serving without a break. Leases expire only while heartbeats can arrive. */
  servingSince(): Promise<Date | undefined>;
  /** Records how many subscribers the tenant has, so that couriers know which tenants to serve. */
  noteBus?(status: { readonly subscribers: number }): Promise<void>;
  couriers?(seenSince: Date): Promise<readonly CourierInfo[]>;
  /** Those that are alive and take executions. Missing in a shell that does not know. */
  conductors?(): Promise<readonly ConductorInfo[]>;
}

/** How much of the past is kept; null: forever. A job's document may override this for its runs. */
export interface Retention {
  /** The age of finished runs, with all that depends on them, and of events. */
  readonly ageMs: number | null;
  /** The newest finished runs of each job. */
  readonly runs: number | null;
  /** The newest events. */
  readonly events: number | null;
}

/** The parsed settings of the installation. */
interface EngineSettings {
  /** The URL by which people and tasks reach the API, if it is configured. */
  readonly publicUrl: string | undefined;
  readonly leaseMs: number;
  readonly retention: Retention;
  /** Which tenants may run `process` and `function` tasks. Missing in a shell of an older build, which allows all. */
  readonly localTasks?: LocalTasks;
  readonly bus?: BusSettings;
}

export interface EngineContext {
  readonly tenant: Tenant;
  readonly pool: Pool;
  readonly hints: Hints;
  readonly time: Time;
  readonly log: Log;
  readonly telemetry: Telemetry;
  readonly settings: EngineSettings;
  readonly directory: Directory;
  readonly secrets: Secrets;
  /** Missing in a shell without flows. */
  readonly conductors?: Conductors;
  /** Missing where no Redis is configured. */
  readonly redis?: RedisPort;
  /**
   * Runs work that can wait (retention, vacuum) when a slot is free: a host runs only a few at a time. Resolves to undefined
   * if the scheduler stops first.
   */
  housekeeping<T>(reason: string, work: () => Promise<T>): Promise<T | undefined>;
}
