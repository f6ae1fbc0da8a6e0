/** Keeps a clock in step with a database server's: measured at the start, every 10 s, and after a clock of this machine was set. */
import { performance } from 'node:perf_hooks';
import { type Db, sql } from '../kernel/sql.ts';
import { every, type Service } from '../kernel/service.ts';
import type { DisciplinedTime } from '../kernel/time.ts';

const measureEveryMs = 10_000;
const lookEveryMs = 1_000;
const partedMs = 100;

/** In a transaction, so that the measured round trip does not include the wait for a connection. */
export function measure(db: Db, time: DisciplinedTime): Promise<void> {
  return db.transaction(async (tx) => {
    const sentAt = performance.now();
    const { ms } = await tx.one<{ ms: number }>(
      sql`select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`,
    );
    time.correct(ms, sentAt, performance.now());
  });
}

/** `start` returns after the first measurement. */
export function clock(db: Db, time: DisciplinedTime, onError: (error: unknown) => void): Service {
  let measuredAt = 0;
  let gap = 0;
  async function look(): Promise<void> {
    const monotonic = performance.now();
    const parted = Math.abs(Date.now() - monotonic - gap) > partedMs;
    if (!parted && monotonic - measuredAt < measureEveryMs) return;
    await measure(db, time);
    measuredAt = performance.now();
    gap = Date.now() - measuredAt;
  }
  const watch = every(lookEveryMs, 'clock', look, onError);
  return {
    name: 'clock',
    async start() {
      await look();
      await watch.start();
    },
    stop: watch.stop,
  };
}
