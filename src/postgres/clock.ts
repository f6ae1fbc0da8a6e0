/** Disciplines a clock to a database server: measured at the start, every 10 s, and when this machine's clocks part. */
import { performance } from 'node:perf_hooks';
import { type Db, sql } from '../kernel/sql.ts';
import { every, type Service } from '../kernel/service.ts';
import type { DisciplinedTime } from '../kernel/time.ts';

const measureEveryMs = 10_000;
const lookEveryMs = 1_000;
const partedMs = 100;

/** In a transaction, so that the wait for a connection is over before the round trip begins: it would put us ahead. */
export function measure(db: Db, time: DisciplinedTime): Promise<void> {
  return db.transaction(async (tx) => {
    const sentAt = performance.now();
    const { ms } = await tx.one<{ ms: number }>(
      sql`select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`,
    );
    time.correct(ms, sentAt, performance.now());
  });
}

/** `start` returns once the clock is known. */
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
