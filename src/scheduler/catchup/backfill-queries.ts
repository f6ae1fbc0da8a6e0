/** Statements about open backfills: finding and firing the next piece, cancelling queued runs, recording the end. */
import { type Db, sql } from '../../kernel/sql.ts';
import type { CatchupRow, TriggerRow } from '../queries.ts';

/** The next part of a backfill: a range of one trigger, cut like a catch-up, with the schedule at the time of the request. */
export type BackfillPiece = CatchupRow &
  Pick<TriggerRow, 'start_at' | 'end_at' | 'period_ms' | 'cron' | 'timezone'> & { readonly backfill_id: string };

const pieces = sql`
      from backfill b
      join job on job.id = b.job_id
      join backfill_trigger p on p.backfill_id = b.id
      join trigger on trigger.id = p.trigger_id`;
const unfired = sql`
       b.ended_at is null and b.state = 'running' and p.next_piece < p.pieces
       and trigger.removed_at is null and job.deleted_at is null and not job.paused`;

/**
 * The next piece, taking backfills and triggers in turn. Paused jobs wait. A backfill with `backlog` queued runs waits too,
 * because further runs would only lengthen the queue.
 */
export function findNextBackfillPiece(db: Db, backlog: number): Promise<BackfillPiece | undefined> {
  return db.maybeOne<BackfillPiece>(sql`
    with free as materialized (
      select b.id
        from backfill b
       cross join lateral backfill_range(b.id) as r
       where b.ended_at is null and b.state = 'running'
         and ${backlog} > (
           select count(*)
             from (
               select 1
                 from live v
                where v.task_id = any (r.tasks) and v.instant between r.from_at and r.to_at and v.worker_id is null
                limit ${backlog}
             ) as queued)
    )
    select p.backfill_id, p.trigger_id, p.from_at, p.to_at, p.next_piece, p.pieces, p.start_at, p.end_at, p.period_ms,
           p.cron, p.timezone, b.policy, b.seed
      ${pieces}
     where ${unfired} and b.id in (select id from free)
     order by p.next_piece, p.backfill_id, p.trigger_id
     limit 1`);
}

/** Fires the piece and records the progress in one commit. Does nothing if it was fired before, or the backfill was cancelled. */
export function fireBackfill(
  db: Db,
  piece: BackfillPiece,
  instants: readonly number[],
  at: Date,
): Promise<{ created: number; killed: number }> {
  return db.one(sql`
    select created, killed
      from fire_backfill(
        ${piece.backfill_id}::uuid, ${piece.trigger_id}::uuid, ${piece.next_piece}::integer,
        ${instants.map((ms) => new Date(ms))}::timestamptz[], ${at}::timestamptz)`);
}

type RipeBackfill = { readonly id: string; readonly state: string; readonly over: boolean };

export interface OpenBackfills {
  readonly open: number;
  /** Whether a backfill has more to fire, even if it is held back. */
  readonly unfired: boolean;
  /** Backfills that are over, or have runs to cancel. */
  readonly ripe: readonly RipeBackfill[];
}

export async function findOpenBackfills(db: Db): Promise<OpenBackfills> {
  const { open, unfired: more } = await db.one<{ open: number; unfired: boolean }>(sql`
    select (select count(*)::integer from backfill where ended_at is null) as open,
           exists (select 1 ${pieces} where ${unfired}) as unfired`);
  if (open === 0) return { open, unfired: false, ripe: [] };
  return { open, unfired: more, ripe: await db.rows(sql`select id, state, over from ripe_backfills()`) };
}

/** Returns the number of cancelled runs and retries. */
export async function cancelBackfillRuns(
  db: Db,
  id: string,
  how: { limit: number; actor: string; at: Date },
): Promise<number> {
  const { cancelled } = await db.one<{ cancelled: number }>(sql`
    select cancel_backfill_runs(
      ${id}::uuid, ${how.limit}::integer, ${how.actor}::text, ${how.at}::timestamptz) as cancelled`);
  return cancelled;
}

/** Records that the backfill is over. Returns false if that was recorded before. */
export async function settleBackfill(db: Db, id: string, at: Date): Promise<boolean> {
  const { settled } = await db.one<{ settled: boolean }>(sql`
    select settle_backfill(${id}::uuid, ${at}::timestamptz) as settled`);
  return settled;
}
