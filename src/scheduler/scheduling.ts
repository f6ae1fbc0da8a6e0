/**
 * What the processors of one scheduler share: the context, and bells by which they wake each other. They share no state:
 * everything is read from the database at the start, and a needless bell costs one query.
 */
import type { EngineContext } from '../contract/context.ts';
import { isConnectionLoss } from '../errors.ts';
import { Bell } from '../kernel/bell.ts';
import { Channel } from '../kernel/channel.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';
import { loop, type Service } from '../kernel/service.ts';
import { type Db, onPool } from '../kernel/sql.ts';
import type { Time } from '../kernel/time.ts';
import { hintCancellations } from '../runs/claim.ts';
import { PartFaults, type Progress } from './part-faults.ts';

/** Processors that are not vital: their failure delays no firing. */
const notVital: ReadonlySet<string> = new Set(['housekeeping', 'vacuum', 'outbox', 'flows']);

/** Does the pending work. Returns how to wait for more, because waiting is not part of the attempt. */
type Pass = (signal: AbortSignal, progress: Progress) => Promise<Wait | undefined>;
export type Wait = () => Promise<unknown>;

const idleAfterMs = 10_000;
/** Maximum interval of sweeps in an idle tenant, which bounds the delay after a lost wake-up. */
const maxSweepMs = 5_000;
const idleFactor = 3;

/** Its functions are properties, so that processors can destructure what they need. */
export class Scheduling {
  readonly ctx: EngineContext;
  readonly db: Db;
  readonly time: Time;
  /** Jobs whose triggers changed, for the trigger processor. */
  readonly changedJobs = new Channel<string>(10_000);
  readonly work: Readonly<
    Record<'catchup' | 'backfills' | 'tokens' | 'retries' | 'dispatch' | 'updates' | 'outbox' | 'flows', Bell>
  >;
  readonly readied = new ReadiedLanes();
  readonly faults: PartFaults;
  readonly #throttle: LogThrottle;
  #activeMs: number;

  constructor(ctx: EngineContext) {
    const { time } = ctx;
    this.ctx = ctx;
    this.db = onPool(ctx.pool);
    this.time = time;
    this.faults = new PartFaults(time);
    this.#throttle = new LogThrottle({ clock: () => time.now() });
    this.#activeMs = time.now();
    this.work = {
      catchup: new Bell(time),
      backfills: new Bell(time),
      tokens: new Bell(time),
      retries: new Bell(time),
      dispatch: new Bell(time),
      updates: new Bell(time),
      outbox: new Bell(time),
      flows: new Bell(time),
    };
  }

  /** Wakes dispatch to offer runs that have become ready, in these lanes (null: in any). */
  readonly ready = (runs: number, lanes?: readonly string[] | null): void => {
    if (runs === 0) return;
    this.noteActivity();
    this.readied.add(lanes);
    this.work.dispatch.ring();
  };

  /** Sends a hint to workers whose runs must be killed, because a newer instant takes their place. */
  readonly killed = async (runs: number): Promise<void> => {
    if (runs > 0) await hintCancellations(this.ctx);
  };

  /** Makes a handler that logs, throttled, what a processor was doing when it failed. */
  readonly fault = (doing: string): ((error: unknown) => void) => {
    const { log } = this.ctx;
    return (error) => {
      const isLost = isConnectionLoss(error);
      if (!this.#throttle.isDue(doing, isLost ? 'lost' : error)) return;
      if (isLost) log.warn({ doing }, 'database unreachable, retrying');
      else log.error({ err: error, doing }, 'scheduler step failed, retrying');
    };
  };

  /** Makes a processor, which repeats its pass for ever. Each pass is an attempt of the part named by `doing`. */
  readonly processor = (name: string, doing: string, pass: Pass): Service => {
    const part = { doing, isVital: !notVital.has(name) };
    const round = async (signal: AbortSignal): Promise<void> => {
      const wait = await this.faults.attempt(part, (progress) => pass(signal, progress));
      await wait?.();
    };
    return loop(name, round, this.fault(doing));
  };

  /** The interval of a sweep: `usualMs`, or longer in a tenant without activity for 10 s. */
  readonly sweepMs = (usualMs: number): number => {
    if (this.time.now() - this.#activeMs < idleAfterMs) return usualMs;
    return Math.max(usualMs, Math.min(idleFactor * usualMs, maxSweepMs));
  };

  readonly noteActivity = (): void => {
    this.#activeMs = this.time.now();
  };
}

/** The lanes in which runs have become ready since the last `take`. */
class ReadiedLanes {
  readonly #lanes = new Set<string>();
  #any = false;

  /** Null or undefined: the lanes are not known. */
  add(lanes: readonly string[] | null | undefined): void {
    if (!lanes) this.#any = true;
    else for (const lane of lanes) this.#lanes.add(lane);
  }

  /** Undefined: runs may be ready in any lane. */
  take(): string[] | undefined {
    const lanes = this.#any || this.#lanes.size === 0 ? undefined : [...this.#lanes];
    this.#any = false;
    this.#lanes.clear();
    return lanes;
  }
}
