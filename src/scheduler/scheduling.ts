/**
 * What the processors of one scheduler share: the context, and bells by which they wake each other. They share no
 * state: everything is recoverable from the database at the start, and a bell that rings for nothing costs one look.
 */
import type { EngineContext } from '../contract/context.ts';
import { isConnectionLoss } from '../errors.ts';
import { Bell } from '../kernel/bell.ts';
import { Channel } from '../kernel/channel.ts';
import { type Service, steady } from '../kernel/service.ts';
import { type Db, onPool } from '../kernel/sql.ts';
import type { Time } from '../kernel/time.ts';
import { tellKilled } from '../runs/claim.ts';
import { PartFaults, type Progress } from './part-faults.ts';

export interface Scheduling {
  readonly ctx: EngineContext;
  readonly db: Db;
  readonly time: Time;
  /** Jobs whose triggers changed, for the trigger processor. */
  readonly changedJobs: Channel<string>;
  readonly work: {
    readonly catchup: Bell;
    readonly backfills: Bell;
    readonly tokens: Bell;
    readonly retries: Bell;
    readonly dispatch: Bell;
    readonly updates: Bell;
  };
  /** Runs have become ready, in these lanes or in any: dispatch offers them. */
  readonly ready: (runs: number, lanes?: readonly string[] | null) => void;
  readonly readied: ReadiedLanes;
  /** Running runs are to be killed, because a newer instant takes their place: their workers are told. */
  readonly killed: (runs: number) => Promise<void>;
  /** Makes a handler that tells what a processor was doing when it failed. */
  readonly fault: (doing: string) => (error: unknown) => void;
  readonly faults: PartFaults;
  /** A processor: repeats its pass for ever. Each pass is an attempt of the part that is named by what it is doing. */
  readonly processor: (name: string, doing: string, pass: Pass) => Service;
  /** How long a sweep waits: as usual, or longer in a tenant where nothing has happened for a while. */
  readonly sweepMs: (usualMs: number) => number;
  /** Something is going on. */
  readonly stir: () => void;
}

/** Nothing fires later because these fail. */
const tidying: ReadonlySet<string> = new Set(['housekeeping', 'vacuum']);

/** Does what there is to do. Answers how to wait for more: waiting is no part of the attempt. */
type Pass = (signal: AbortSignal, progress: Progress) => Promise<Wait | undefined>;
export type Wait = () => Promise<unknown>;

const idleAfterMs = 10_000;
/** What a lost wake-up missed is found by then, in an idle tenant, too. */
const longestSweepMs = 5_000;
const slower = 3;
/** A fault that stays the same is told so often. */
const tellEveryMs = 60_000;

export function makeScheduling(ctx: EngineContext): Scheduling {
  const faults = new PartFaults(ctx.time);
  let stirredMs = ctx.time.now();
  const stir = (): void => {
    stirredMs = ctx.time.now();
  };
  const fault = (doing: string): ((error: unknown) => void) => {
    const isNews = rarely(ctx.time);
    return (error) => {
      const lost = isConnectionLoss(error);
      if (!isNews(lost ? 'lost' : String(error))) return;
      if (lost) ctx.log.warn({ doing }, 'the database is out of reach; trying again');
      else ctx.log.error({ err: error, doing }, 'the scheduler met a fault; trying again');
    };
  };
  const work = {
    catchup: new Bell(ctx.time),
    backfills: new Bell(ctx.time),
    tokens: new Bell(ctx.time),
    retries: new Bell(ctx.time),
    dispatch: new Bell(ctx.time),
    updates: new Bell(ctx.time),
  };
  const readied = new ReadiedLanes();
  return {
    ctx,
    db: onPool(ctx.pool),
    time: ctx.time,
    changedJobs: new Channel(10_000),
    work,
    readied,
    ready: (runs, lanes) => {
      if (runs === 0) return;
      stir();
      readied.add(lanes);
      work.dispatch.ring();
    },
    killed: async (runs) => {
      if (runs > 0) await tellKilled(ctx);
    },
    fault,
    faults,
    processor: (name, doing, pass) => {
      const part = { doing, isVital: !tidying.has(name) };
      const round = async (signal: AbortSignal): Promise<void> => {
        const wait = await faults.attempt(part, (progress) => pass(signal, progress));
        await wait?.();
      };
      return steady(name, round, fault(doing));
    },
    sweepMs: (usualMs) => {
      if (ctx.time.now() - stirredMs < idleAfterMs) return usualMs;
      return Math.max(usualMs, Math.min(slower * usualMs, longestSweepMs));
    },
    stir,
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

/** Whether what is said is worth telling: it is something else than the last time, or that was long ago. */
function rarely(time: Time): (said: string) => boolean {
  let last: { readonly said: string; readonly atMs: number } | undefined;
  return (said) => {
    const nowMs = time.now();
    if (last?.said === said && nowMs - last.atMs < tellEveryMs) return false;
    last = { said, atMs: nowMs };
    return true;
  };
}
