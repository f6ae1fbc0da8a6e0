/** Statements about missed instants that have not been fired yet. */
import { type Db, sql } from '../../kernel/sql.ts';
import type { NewCatchup } from './catchup.ts';
import { type CatchupRow, type PlannedCatchup, type TriggerRow, triggerColumns } from '../queries.ts';

/**
 * If another scheduler recorded a range from the same instant, the longer range wins and starts from its first piece,
 * because its pieces are cut differently. Instants that have fired do not fire again (I1).
 */
export async function insertCatchups(db: Db, rows: readonly NewCatchup[]): Promise<void> {
  await db.exec(sql`
    insert into catchup (trigger_id, from_at, to_at, policy, pieces, seed, plan)
    select *
      from unnest(
        ${rows.map((r) => r.trigger_id)}::uuid[], ${rows.map((r) => r.from_at)}::timestamptz[],
        ${rows.map((r) => r.to_at)}::timestamptz[], ${rows.map((r) => r.policy)}::text[],
        ${rows.map((r) => r.pieces)}::integer[], ${rows.map((r) => r.seed)}::integer[],
        ${rows.map((r) => r.plan)}::text[])
     order by 1, 2
    on conflict (trigger_id, from_at) do update set
      to_at = excluded.to_at, policy = excluded.policy, pieces = excluded.pieces, seed = excluded.seed,
      plan = excluded.plan, next_piece = 0
     where excluded.to_at > catchup.to_at`);
}

export function findCatchupsOfJob(db: Db, job: string): Promise<PlannedCatchup[]> {
  return db.rows<PlannedCatchup>(sql`
    select catchup.*
      from catchup
      join trigger on trigger.id = catchup.trigger_id
     where trigger.job_id = ${job}`);
}

/** A catch-up with its trigger and the state of its runs. */
export type CatchupWork = PlannedCatchup &
  TriggerRow & {
    /** The number of edges from the trigger to tasks. */
    readonly edges: number;
    /** Unclaimed runs of those tasks, counted up to `most`. */
    readonly waiting: number;
  };

interface CatchupPage {
  /** Continues after this row, in the order of trigger and range. */
  readonly after: Pick<CatchupRow, 'trigger_id' | 'from_at'> | undefined;
  /** Triggers to skip. */
  readonly resting: readonly string[];
  readonly limit: number;
  readonly most: number;
}

/** The next catch-ups with work to do. Paused jobs wait. */
export function findNextCatchups(db: Db, look: CatchupPage): Promise<CatchupWork[]> {
  const further =
    look.after === undefined
      ? sql`true`
      : sql`(catchup.trigger_id, catchup.from_at) > (${look.after.trigger_id}::uuid, ${look.after.from_at}::timestamptz)`;
  return db.rows<CatchupWork>(sql`
    with next as (
      select catchup.trigger_id, catchup.from_at, catchup.to_at, catchup.policy, catchup.next_piece, catchup.pieces,
             catchup.seed, catchup.plan, ${triggerColumns}
        from catchup
        join trigger on trigger.id = catchup.trigger_id
        join job on job.id = trigger.job_id
       where trigger.removed_at is null and job.deleted_at is null and not job.paused
         and catchup.trigger_id <> all (${look.resting}::uuid[]) and ${further}
       order by catchup.trigger_id, catchup.from_at
       limit ${look.limit}
    )
    select next.*,
           (select count(*) from trigger_edge e where e.trigger_id = next.trigger_id)::integer as edges,
           (select count(*)
              from (
                select 1
                  from trigger_edge e
                  join live on live.task_id = e.task_id
                 where e.trigger_id = next.trigger_id and live.worker_id is null
                 limit ${look.most}
              ) as waits)::integer as waiting
      from next
     order by next.trigger_id, next.from_at`);
}

/** Matches rows that are still as we read them. Another scheduler may have advanced or cut a row again; we must not touch it. */
const unchanged = sql`
  catchup.trigger_id = r.trigger_id and catchup.from_at = r.from_at and catchup.to_at = r.to_at
  and catchup.next_piece = r.next_piece and catchup.pieces = r.pieces and catchup.plan is not distinct from r.plan`;

function unnestRows(rows: readonly PlannedCatchup[]) {
  return sql`
    unnest(
      ${rows.map((r) => r.trigger_id)}::uuid[], ${rows.map((r) => r.from_at)}::timestamptz[],
      ${rows.map((r) => r.to_at)}::timestamptz[], ${rows.map((r) => r.next_piece)}::integer[],
      ${rows.map((r) => r.pieces)}::integer[], ${rows.map((r) => r.plan)}::text[]
    ) as r (trigger_id, from_at, to_at, next_piece, pieces, plan)`;
}

/** Records that the next piece of each row has been fired. */
export async function advanceCatchups(db: Db, rows: readonly PlannedCatchup[]): Promise<void> {
  const done = rows.filter((row) => row.next_piece + 1 >= row.pieces);
  const more = rows.filter((row) => row.next_piece + 1 < row.pieces);
  if (done.length > 0) await db.exec(sql`delete from catchup using ${unnestRows(done)} where ${unchanged}`);
  if (more.length > 0) {
    await db.exec(
      sql`update catchup set next_piece = catchup.next_piece + 1 from ${unnestRows(more)} where ${unchanged}`,
    );
  }
}

interface Replacement {
  readonly row: PlannedCatchup;
  readonly rest: NewCatchup | undefined;
}

/** Replaces rows whose triggers were edited by their rest, if they are still as they were read. */
export function replaceCatchups(db: Db, edited: readonly Replacement[]): Promise<void> {
  return db.transaction(async (tx) => {
    const gone = await tx.rows<{ trigger_id: string; from_at: Date }>(sql`
      delete from catchup using ${unnestRows(edited.map(({ row }) => row))} where ${unchanged}
      returning catchup.trigger_id, catchup.from_at`);
    const dropped = new Set(gone.map(keyOf));
    const rests = edited.flatMap(({ row, rest }) => (rest !== undefined && dropped.has(keyOf(row)) ? [rest] : []));
    if (rests.length > 0) await insertCatchups(tx, keepLongest(rests));
  });
}

function keyOf(row: { trigger_id: string; from_at: Date }): string {
  return `${row.trigger_id} ${row.from_at.getTime()}`;
}

/** Keeps one row per trigger and first instant, because a statement must not write a row twice. */
function keepLongest(rows: readonly NewCatchup[]): NewCatchup[] {
  const ascending = rows.toSorted((a, b) => a.to_at.getTime() - b.to_at.getTime());
  return [...new Map(ascending.map((row) => [keyOf(row), row])).values()];
}

/** Drops catch-ups of removed triggers. A trigger that is added again continues from its latest instant. */
export async function dropRemovedCatchups(db: Db): Promise<void> {
  await db.exec(sql`
    delete from catchup
     using trigger, job
     where trigger.id = catchup.trigger_id and job.id = trigger.job_id
       and (trigger.removed_at is not null or job.deleted_at is not null)`);
}
