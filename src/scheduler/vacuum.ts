/**
 * Sweeps the queue's table: every run leaves dead rows in `live`, and a claim walks over all that stand before the first
 * ready run. Autovacuum comes once a minute at best; under load that halves the rate. Where a long transaction elsewhere
 * keeps the dead rows from being removed, sweeping is in vain, so the pauses grow until it helps again.
 */
import { pause, type Service, steady } from '../kernel/service.ts';
import { type Db, sql } from '../kernel/sql.ts';
import type { Scheduling } from './scheduling.ts';

const everyMs = 1_000;
const longestMs = 30_000;
/** Fewer dead rows than this are not worth a sweep. */
const enough = 1_000;

export function vacuumService({ db, fault }: Scheduling): Service {
  let waitMs = everyMs;
  return steady(
    'vacuum',
    async (signal) => {
      await pause(waitMs, signal);
      if (signal.aborted) return;
      const before = await deadRows(db);
      if (before < enough) {
        waitMs = everyMs;
        return;
      }
      // without truncation: that would lock everybody out for a moment
      await db.exec(sql`vacuum (truncate off, skip_locked) live`);
      const helped = (await deadRows(db)) < before / 2;
      waitMs = helped ? everyMs : Math.min(longestMs, waitMs * 2);
    },
    fault('sweeping the queue’s table'),
  );
}

async function deadRows(db: Db): Promise<number> {
  const { dead } = await db.one<{ dead: number }>(sql`
    select coalesce(pg_stat_get_dead_tuples('live'::regclass), 0)::float8 as dead`);
  return dead;
}
