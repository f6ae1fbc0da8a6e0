/** What the shell gives an engine for one tenant: its pool, hints, clock, log, settings and the installation around it. */
import type { Pool } from 'pg';
import type { Log } from '../kernel/log.ts';
import type { Telemetry } from '../kernel/telemetry.ts';
import type { Time } from '../kernel/time.ts';
import type { Hints } from './channels.ts';
import type { Conductors } from './flow-messages.ts';
import type { LocalTasks } from './local-tasks.ts';
import type { HeldRun } from './wire.ts';

interface Tenant {
  readonly id: string;
  readonly name: string;
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

/** What a scheduler says of itself. */
export interface SchedulerStatus {
  readonly queuedTriggers: number;
  readonly nextTriggerId: string | null;
  /** Some of the next triggers to fire, and of those that are being fired; the first comes first. */
  readonly nextTriggers: readonly string[];
  /** Runs were ready when it last looked. */
  readonly ready: boolean;
}

export interface WorkerPage {
  readonly workers: readonly WorkerInfo[];
  /** The `cursor` of the next page; null: there is none. */
  readonly next: string | null;
}

export interface Directory {
  /** Workers heard of since then, by name. Where there are very many, only those heard of last. */
  workers(seenSince: Date): Promise<WorkerInfo[]>;
  /** All workers heard of since then, by name, a page at a time. */
  workerPage(page: { since: Date; cursor: string | undefined; limit: number }): Promise<WorkerPage>;
  worker(id: string): Promise<WorkerInfo | undefined>;
  /** Ids of the workers that call with this key. A shell of an older build does not know. */
  workersOfKey?(keyId: string): Promise<readonly string[]>;
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
  readonly hints: Hints;
  readonly time: Time;
  readonly log: Log;
  readonly telemetry: Telemetry;
  readonly settings: EngineSettings;
  readonly directory: Directory;
  readonly secrets: Secrets;
  /** A shell without flows has none. */
  readonly conductors?: Conductors;
  /**
   * Does work that can wait (retention, vacuum) when it is its turn: a host does a few pieces of work at a time. Undefined
   * when the scheduler is to end first.
   */
  housekeeping<T>(reason: string, work: () => Promise<T>): Promise<T | undefined>;
}
