/**
 * The rival of `bench -- errands`: graphile-worker, with the settings that its documentation recommends for speed. A local queue
 * takes 500 jobs at a time, and completed jobs are removed in batches. Both sides have the same batches,
 * connections, jobs at work and vacuums.
 */
import { makeWorkerUtils, Logger, run, runMigrations } from 'graphile-worker';
import { Pool } from 'pg';
import { type Address, clientConfig } from '../src/postgres/address.ts';
import { atEnd } from './ending.ts';

export interface Rival {
  push(keys: readonly string[]): Promise<void>;
  /** Returns once all pushed jobs have run and are removed. */
  drain(jobs: number): Promise<void>;
  /** Returns the milliseconds from a push to the start of its job. */
  latencies(samples: number, restMs: number): Promise<number[]>;
  readonly vacuum: () => Promise<void>;
  close(): Promise<void>;
}

/** Errands of one statement, on both sides. */
export const batch = 500;
/** Jobs at work at once, on both sides. */
const concurrency = batch;
export const connections = 4;
/** Of the table of either side, between the pushes and the drain. */
export const vacuum = 'vacuum (analyze, truncate off)';

export async function openGraphile(address: Address): Promise<Rival> {
  const pgPool = new Pool({ ...clientConfig(address, 'millrace bench rival'), max: connections });
  // its pool needs a listener, and its own log is not of interest
  pgPool.on('error', () => {});
  pgPool.on('connect', (client) => client.on('error', () => {}));
  const logger = new Logger(() => () => {});
  await runMigrations({ pgPool, logger });
  const utils = await makeWorkerUtils({ pgPool, logger });
  const start = (task: (payload: unknown) => void, localQueue: boolean) =>
    run({
      pgPool,
      logger,
      concurrency,
      noHandleSignals: true,
      taskList: { noop: async (payload) => task(payload) },
      preset: {
        worker: {
          ...(localQueue ? { localQueue: { size: batch, refetchDelay: { durationMs: 10 } } } : {}),
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
        },
      },
    });
  return {
    async push(keys) {
      await utils.addJobs(keys.map((key) => ({ identifier: 'noop', payload: { key }, jobKey: key })));
    },
    async drain(jobs) {
      let ran = 0;
      let finished = (): void => {};
      const all = new Promise<void>((resolve) => {
        finished = resolve;
      });
      const runner = await start(() => {
        ran += 1;
        if (ran === jobs) finished();
      }, true);
      await all;
      await runner.stop();
    },
    async latencies(samples, restMs) {
      const times: number[] = [];
      let begun = (): void => {};
      const runner = await start(() => begun(), false);
      for (let i = 0; i < samples; i++) {
        const started = new Promise<void>((resolve) => {
          begun = resolve;
        });
        const pushedMs = performance.now();
        await utils.addJob('noop', { i });
        await started;
        times.push(performance.now() - pushedMs);
        await new Promise((resolve) => void setTimeout(resolve, restMs));
      }
      await runner.stop();
      return times;
    },
    async vacuum() {
      await pgPool.query(`${vacuum} graphile_worker._private_jobs`);
    },
    close: atEnd(async () => {
      await utils.release();
      await pgPool.end();
    }),
  };
}
