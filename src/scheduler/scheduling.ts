/**
 * What the processors of one scheduler share: the context, and bells by which they wake each other. They share no
 * state: everything is recoverable from the database at the start, and a bell that rings for nothing costs one look.
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

/** Nothing fires later because these fail. */
const tidying: ReadonlySet<string> = new Set(['housekeeping', 'vacuum']);

/** Does what there is to do. Answers how to wait for more: waiting is no part of the attempt. */
type Pass = (signal: AbortSignal, progress: Progress) => Promise<Wait | undefined>;
export type Wait = () => Promise<unknown>;

const idleAfterMs = 10_000;
/** What a lost wake-up missed is found by then, in an idle tenant, too. */
const longestSweepMs = 5_000;
const slower = 3;

/** Its functions are properties, so that processors can take apart what they need. */
export class Scheduling {
  readonly ctx: EngineContext;
  readonly db: Db;
  readonly time: Time;
  /** Jobs whose triggers changed, for the trigger processor. */
  readonly changedJobs = new Channel<string>(10_000);
  readonly work: Readonly<Record<'catchup' | 'backfills' | 'tokens' | 'retries' | 'dispatch' | 'updates', Bell>>;
  readonly readied = new ReadiedLanes();
  readonly faults: PartFaults;
  readonly #throttle: LogThrottle;
  #stirredMs: number;

  constructor(ctx: EngineContext) {
    const { time } = ctx;
    this.ctx = ctx;
    this.db = onPool(ctx.pool);
    this.time = time;
    this.faults = new PartFaults(time);
    this.#throttle = new LogThrottle({ clock: () => time.now() });
    this.#stirredMs = time.now();
    this.work = {
      catchup: new Bell(time),
      backfills: new Bell(time),
      tokens: new Bell(time),
      retries: new Bell(time),
      dispatch: new Bell(time),
      updates: new Bell(time),
    };
  }

  /** Runs have become ready, in these lanes or in any: dispatch offers them. */
  readonly ready = (runs: number, lanes?: readonly string[] | null): void => {
    if (runs === 0) return;
    this.stir();
    this.readied.add(lanes);
    this.work.dispatch.ring();
  };

  /** Running runs are to be killed, because a newer instant takes their place: sends a hint to their workers. */
  readonly killed = async (runs: number): Promise<void> => {
    if (runs > 0) await hintCancellations(this.ctx);
  };

  /** Makes a handler that logs, throttled, what a processor was doing when it failed. */
  readonly fault = (doing: string): ((error: unknown) => void) => {
    const { log } = this.ctx;
    return (error) => {
      const isLost = isConnectionLoss(error);
      if (!this.#throttle.isDue(doing, isLost ? 'lost' : error)) return;
      if (isLost) log.warn({ doing }, 'the database is out of reach; trying again');
      else log.error({ err: error, doing }, 'the scheduler met a fault; trying again');
    };
  };

  /** A processor: repeats its pass for ever. Each pass is an attempt of the part that is named by what it is doing. */
  readonly processor = (name: string, doing: string, pass: Pass): Service => {
    const part = { doing, isVital: !tidying.has(name) };
    const round = async (signal: AbortSignal): Promise<void> => {
      const wait = await this.faults.attempt(part, (progress) => pass(signal, progress));
      await wait?.();
    };
    return loop(name, round, this.fault(doing));
  };

  /** How long a sweep waits: as usual, or longer in a tenant where nothing has happened for a while. */
  readonly sweepMs = (usualMs: number): number => {
    if (this.time.now() - this.#stirredMs < idleAfterMs) return usualMs;
    return Math.max(usualMs, Math.min(slower * usualMs, longestSweepMs));
  };

  /** Something is going on. */
  readonly stir = (): void => {
    this.#stirredMs = this.time.now();
  };
}

/** In which lanes runs have become ready since somebody took note. */
class ReadiedLanes {
  readonly #lanes = new Set<string>();
  #any = false;

  /** None: it is not known in which. */
  add(lanes: readonly string[] | null | undefined): void {
    if (!lanes) this.#any = true;
    else for (const lane of lanes) this.#lanes.add(lane);
  }

  /** Undefined: in any. */
  take(): string[] | undefined {
    const lanes = this.#any || this.#lanes.size === 0 ? undefined : [...this.#lanes];
    this.#any = false;
    this.#lanes.clear();
    return lanes;
  }
}
