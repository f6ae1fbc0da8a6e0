/**
 * Vacuums the queue's table. Every run leaves dead rows in `live`, and a claim walks over all of them before the first ready
 * run. Autovacuum runs once a minute at best; under load, that halves the rate of claims. If a long transaction elsewhere
 * keeps dead rows from being removed, vacuuming does not help, so the waits grow until it does.
 */
import { pause, type Service } from '../../kernel/service.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { deadRows } from '../../runs/claim-floor.ts';
import type { Scheduling } from '../scheduling.ts';

const busyWaitMs = 1_000;
/** The wait for a queue with few changes. */
const calmWaitMs = 4_000;
const maxWaitMs = 30_000;
/** Fewer changed rows than this are not worth a vacuum, nor is a smaller share of the table, because it reads all indexes. */
const minChangedRows = 1_000;
const minChangedShare = 0.05;
/** With fewer changes than this between two checks, the queue counts as calm. */
const maxCalmChanges = 100;

export function vacuumService({ ctx, db, sweepMs, processor }: Scheduling): Service {
  let waitMs = busyWaitMs;
  let changedAtSweep = 0;
  let changedAtCheck = 0;
  return processor('vacuum', 'vacuuming the queue', async (signal) => {
    const wait = () => pause(sweepMs(waitMs), signal);
    const { changed, rows } = await countRows(db);
    const isCalm = changed - changedAtCheck < maxCalmChanges;
    changedAtCheck = changed;
    if (isCalm) waitMs = Math.max(waitMs, calmWaitMs);
    else if (waitMs === calmWaitMs) waitMs = busyWaitMs;
    // statistics are reset after a crash
    if (changed < changedAtSweep) changedAtSweep = 0;
    if (changed - changedAtSweep < Math.max(minChangedRows, minChangedShare * rows)) return wait;
    // no truncation, which would lock out all claims for a moment; one process instead of one per index, to leave CPU to others
    const vacuum = (): Promise<number> => db.exec(sql`vacuum (truncate off, skip_locked, parallel 0) live`);
    if ((await ctx.housekeeping('vacuum of the queue', vacuum)) === undefined) return wait;
    const inVain = (await deadRows(db)) > (changed - changedAtSweep) / 2;
    waitMs = inVain ? Math.min(maxWaitMs, waitMs * 2) : busyWaitMs;
    changedAtSweep = changed;
    return wait;
  });
}

/**
 * Counts the rows, and the rows updated or deleted so far. The number of dead rows would not do: rows that a query has
 * pruned are still in the indexes.
 */
async function countRows(db: Db): Promise<{ rows: number; changed: number }> {
  return db.one(sql`
    select pg_stat_get_live_tuples('live'::regclass)::float8 as rows,
           (pg_stat_get_tuples_updated('live'::regclass) + pg_stat_get_tuples_deleted('live'::regclass))::float8 as changed`);
}
