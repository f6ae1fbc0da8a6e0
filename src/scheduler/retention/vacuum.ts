/**
 * Sweeps the queue's table: every run leaves dead rows in `live`, and a claim walks over all that stand before the first
 * ready run. Autovacuum comes once a minute at best; under load that halves the rate. Where a long transaction elsewhere
 * keeps the dead rows from being removed, sweeping is in vain, so the pauses grow until it helps again.
 */
import { pause, type Service } from '../../kernel/service.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { deadRows } from '../../runs/claim-floor.ts';
import type { Scheduling } from '../scheduling.ts';

const everyMs = 1_000;
/** Of one in which little happens. */
const calmMs = 4_000;
const longestMs = 30_000;
/** Fewer changed rows than this are not worth a sweep, nor is less than this part of the table, all of whose indexes it reads. */
const enough = 1_000;
const enoughPart = 0.05;
/** And with so few between two looks it will be a while until they are enough. */
const few = 100;

export function vacuumService({ ctx, db, sweepMs, processor }: Scheduling): Service {
  let waitMs = everyMs;
  let swept = 0;
  let seen = 0;
  return processor('vacuum', 'vacuuming the queue', async (signal) => {
    const wait = () => pause(sweepMs(waitMs), signal);
    const { changed, rows } = await countRows(db);
    const isCalm = changed - seen < few;
    seen = changed;
    if (isCalm) waitMs = Math.max(waitMs, calmMs);
    else if (waitMs === calmMs) waitMs = everyMs;
    // statistics begin anew after a crash
    if (changed < swept) swept = 0;
    if (changed - swept < Math.max(enough, enoughPart * rows)) return wait;
    // without truncation: that would lock everybody out for a moment; and by one process, not one per index: others have work
    const vacuum = (): Promise<number> => db.exec(sql`vacuum (truncate off, skip_locked, parallel 0) live`);
    if ((await ctx.housekeeping('vacuum of the queue', vacuum)) === undefined) return wait;
    const inVain = (await deadRows(db)) > (changed - swept) / 2;
    waitMs = inVain ? Math.min(longestMs, waitMs * 2) : everyMs;
    swept = changed;
    return wait;
  });
}

/** How many there are, and how many were changed or deleted so far. Not the dead ones: those that a query tidied up are still in the indexes. */
async function countRows(db: Db): Promise<{ rows: number; changed: number }> {
  return db.one(sql`
    select pg_stat_get_live_tuples('live'::regclass)::float8 as rows,
           (pg_stat_get_tuples_updated('live'::regclass) + pg_stat_get_tuples_deleted('live'::regclass))::float8 as changed`);
}
