/** Sustained load on a tenant: fires instants in batches to keep a number of runs outstanding, and counts runs that end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from '../src/kernel/sql.ts';
import type { Firing } from '../src/scheduler/queries.ts';
import type { Up } from './product.ts';
import type { Tenant } from './tenant.ts';
import type { Workload } from './workloads.ts';

export interface Load {
  /** The earliest instant that the load fires. */
  readonly firstInstant: Date;
  /** Runs requested since the load began. */
  readonly asked: () => number;
  readonly firings: () => number;
  /** Updates of triggers' marks: one per trigger and batch of firings. */
  readonly moves: () => number;
  /**
   * Keeps the load up for `ms` milliseconds and then lets it drain. The rate excludes ramp-up and draining: measuring
   * begins once as many runs have ended as were outstanding at first, because only then are all stages at work.
   */
  run(ms: number, onUp?: () => Promise<void>): Promise<{ readonly runs: number; readonly perSecond: number }>;
}

export interface LoadOptions {
  readonly up: Up;
  readonly tenant: Tenant;
  readonly workload: Pick<Workload, 'runsPerFiring'>;
  /** Number of unfinished runs to keep up, over all stages. */
  readonly outstanding: number;
}

/** A reading of the counter of ended runs, and its time. */
interface Reading {
  readonly done: number;
  readonly at: number;
}

const maxFiringsPerBatch = 1_000;
/** Pause between readings: reading the counters slows down what is measured. */
const readEveryMs = 200;
/** Without a run ending for this long, the load counts as stuck. */
const stuckMs = 30_000;
/** Age of the first instant. Retention keeps runs of that age, and instants one second apart leave room for a day of load. */
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
    for (let left = missing; left > 0; left -= maxFiringsPerBatch) {
      const count = Math.min(left, maxFiringsPerBatch);
      await tenant.fire(Array.from({ length: count }, (_, i) => firingAt(triggers, firstMs, firings + i)));
      firings += count;
      moves += Math.min(count, triggers.length);
    }
  };

  const drain = async (): Promise<void> => {
    let last = { done: -1, at: performance.now() };
    for (let done = await finished(); done < asked(); done = await finished()) {
      if (done > last.done) last = { done, at: performance.now() };
      if (performance.now() - last.at > stuckMs) throw new Error(`${asked() - done} runs have not ended`);
      await sleep(readEveryMs / 4);
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
      const read = async (): Promise<Reading> => ({ done: await finished(), at: performance.now() });
      const keepUpUntil = async (enough: (reading: Reading) => boolean): Promise<Reading> => {
        let last = await read();
        for (; !enough(last); last = await read()) {
          await feed(last.done);
          await sleep(readEveryMs);
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

/** Numbers firings so that all triggers fire at one instant before any fires at the next. */
function firingAt(triggers: readonly string[], firstMs: number, number: number): Firing {
  const triggerId = triggers[number % triggers.length] ?? '';
  return { triggerId, instantMs: firstMs + Math.floor(number / triggers.length) * apartMs };
}
