/** Sustained load on a tenant: fires instants in batches so that a number of runs is always outstanding, and counts what ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../src/kernel/sql.ts';
import type { Firing } from '../src/scheduler/queries.ts';
import type { Up } from './product.ts';
import type { Tenant } from './tenant.ts';
import type { Workload } from './workloads.ts';

export interface Load {
  /** No instant that it fires is before this. */
  readonly firstInstant: Date;
  /** Runs that have been asked for since the load began. */
  readonly asked: () => number;
  readonly firings: () => number;
  /** Triggers whose marks moved: each once per batch of firings. */
  readonly moves: () => number;
  /**
   * Keeps the load up for that long and then lets it drain. The rate is of the time while it was up, from when as many
   * runs have ended as were asked for at first: then all stages are at work, and not all instants at the same one.
   */
  run(ms: number, onUp?: () => Promise<void>): Promise<{ readonly runs: number; readonly perSecond: number }>;
}

export interface LoadOptions {
  readonly up: Up;
  readonly tenant: Tenant;
  readonly workload: Workload;
  /** Unfinished runs, of all stages. */
  readonly outstanding: number;
}

/** How many runs had ended, and when. */
interface Look {
  readonly done: number;
  readonly at: number;
}

const largestFiring = 1_000;
/** Counters are not free: what is read here slows what is measured. */
const lookEveryMs = 200;
const stuckMs = 30_000;
/** Young enough that retention keeps what is made of them; a second apart there is room for a day of load. */
const oldestMs = 24 * 3_600_000;
const apartMs = 1_000;

export async function makeLoad({ up, tenant, workload, outstanding }: LoadOptions): Promise<Load> {
  const triggers = await triggersOf(tenant);
  const firstMs = Date.now() - oldestMs;
  let firings = 0;
  let moves = 0;
  const asked = (): number => firings * workload.runsPerFiring;
  const finished = async (): Promise<number> => (await up.metrics()).get('millrace_reports_applied_total') ?? 0;

  const feed = async (done: number): Promise<void> => {
    const missing = Math.floor((outstanding - (asked() - done)) / workload.runsPerFiring);
    for (let left = missing; left > 0; left -= largestFiring) {
      const count = Math.min(left, largestFiring);
      await tenant.fire(Array.from({ length: count }, (_, i) => firingAt(triggers, firstMs, firings + i)));
      firings += count;
      moves += Math.min(count, triggers.length);
    }
  };

  const drain = async (): Promise<void> => {
    let last = { done: -1, at: performance.now() };
    for (let done = await finished(); done < asked(); done = await finished()) {
      if (done > last.done) last = { done, at: performance.now() };
      if (performance.now() - last.at > stuckMs) throw new Error(`${asked() - done} runs do not end`);
      await sleep(lookEveryMs / 4);
    }
  };

  return {
    firstInstant: new Date(firstMs),
    asked,
    firings: () => firings,
    moves: () => moves,
    async run(ms, onUp) {
      const before = asked();
      await feed(await finished());
      await onUp?.();
      const look = async (): Promise<Look> => ({ done: await finished(), at: performance.now() });
      const keepUpUntil = async (enough: (look: Look) => boolean): Promise<Look> => {
        let last = await look();
        for (; !enough(last); last = await look()) {
          await feed(last.done);
          await sleep(lookEveryMs);
        }
        return last;
      };
      const first = await keepUpUntil(({ done }) => done >= before + outstanding);
      const last = await keepUpUntil(({ at }) => at - first.at >= ms);
      await drain();
      return { runs: asked() - before, perSecond: ((last.done - first.done) / (last.at - first.at)) * 1_000 };
    },
  };
}

async function triggersOf({ db }: Tenant): Promise<string[]> {
  const { ids } = await db.one<{ ids: string[] }>(sql`select array_agg(id order by id)::text[] as ids from trigger`);
  return ids;
}

/** All triggers at one instant before any at the next. */
function firingAt(triggers: readonly string[], firstMs: number, number: number): Firing {
  const triggerId = triggers[number % triggers.length] ?? '';
  return { triggerId, instantMs: firstMs + Math.floor(number / triggers.length) * apartMs };
}
