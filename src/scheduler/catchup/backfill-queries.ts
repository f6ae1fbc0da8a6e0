/** Statements about backfills that are under way: the next piece, firing it, cancelling what is queued, noting the end. */
import { type Db, sql } from '../../kernel/sql.ts';
import type { CatchupRow, TriggerRow } from '../queries.ts';

/** A part of a backfill that is next: a range of one trigger, cut like a catch-up, with its schedule of then. */
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
 * The next piece, every backfill's and trigger's in turn. Paused jobs wait, and so does a backfill of which `backlog`
 * runs are still queued: what it fires would only lie there.
 */
export function nextBackfillPiece(db: Db, backlog: number): Promise<BackfillPiece | undefined> {
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

/** Fires the piece and moves on, in one commit; does nothing where another has done so, or it was cancelled. */
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
  /** Whether one has more to fire, though it may be held back. */
  readonly unfired: boolean;
  /** Those that are over or have runs that are to be cancelled. */
  readonly ripe: readonly RipeBackfill[];
}

export async function openBackfills(db: Db): Promise<OpenBackfills> {
  const { open, unfired: more } = await db.one<{ open: number; unfired: boolean }>(sql`
    select (select count(*)::integer from backfill where ended_at is null) as open,
           exists (select 1 ${pieces} where ${unfired}) as unfired`);
  if (open === 0) return { open, unfired: false, ripe: [] };
  return { open, unfired: more, ripe: await db.rows(sql`select id, state, over from ripe_backfills()`) };
}

/** Answers how many. */
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

/** Notes that it is over; false where that has been done. */
export async function settleBackfill(db: Db, id: string, at: Date): Promise<boolean> {
  const { settled } = await db.one<{ settled: boolean }>(sql`
    select settle_backfill(${id}::uuid, ${at}::timestamptz) as settled`);
  return settled;
}
