/** Statements that create and read backfills. */
import { newId } from '../../kernel/id.ts';
import { type Db, sql } from '../../kernel/sql.ts';

export type BackfillTrigger = {
  readonly id: string;
  readonly name: string;
  readonly start_at: Date;
  readonly end_at: Date | null;
  readonly period_ms: number | null;
  readonly cron: string | null;
  readonly timezone: string | null;
  readonly offset_ms: number;
};

export function listBackfillTriggers(db: Db, job: string): Promise<BackfillTrigger[]> {
  return db.rows<BackfillTrigger>(sql`
    select id, name, start_at, end_at, period_ms, cron, timezone, offset_ms
      from trigger
     where job_id = ${job} and removed_at is null
     order by name`);
}

/** Returns those of the given instants for which the trigger has not fired, by any cause. */
export async function findUnfired(db: Db, trigger: string, instants: readonly number[]): Promise<number[]> {
  const rows = await db.rows<{ instant: Date }>(sql`
    select i.instant
      from unnest(${instants.map((ms) => new Date(ms))}::timestamptz[]) as i (instant)
     where not exists (select 1 from firing f where f.trigger_id = ${trigger} and f.instant = i.instant)
     order by 1`);
  return rows.map((row) => row.instant.getTime());
}

/** The job's rule for instants that become due while its limit of active instants is reached; `queue` without a limit. */
export async function overlapOf(db: Db, job: string): Promise<string> {
  const row = await db.maybeOne<{ overlap: string }>(sql`
    select overlap from gate where id = ${job} and capacity is not null`);
  return row?.overlap ?? 'queue';
}

export interface NewBackfill {
  readonly job: string;
  readonly name: string | undefined;
  readonly first: Date;
  readonly last: Date;
  readonly order: string;
  readonly priority: string;
  readonly onlyMissing: boolean;
  readonly actor: string;
  readonly at: Date;
  readonly parts: readonly NewPart[];
}

export interface NewPart {
  readonly trigger: BackfillTrigger;
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
  readonly instants: number;
  readonly pieces: number;
}

/** Returns undefined if the job already has a backfill of that name. */
export async function insertBackfill(db: Db, b: NewBackfill): Promise<string | undefined> {
  const seed = Math.floor(Math.random() * 2 ** 30);
  const row = await db.maybeOne<{ id: string }>(sql`
    insert into backfill (id, job_id, name, first_at, last_at, policy, priority, only_missing, seed, actor, created_at)
    values (${newId()}, ${b.job}, ${b.name ?? null}, ${b.first}, ${b.last}, ${b.order}, ${b.priority}::priority,
            ${b.onlyMissing}, ${seed}, ${b.actor}, ${b.at})
    on conflict (job_id, name) do nothing
    returning id`);
  if (row !== undefined) await insertParts(db, row.id, b.parts);
  return row?.id;
}

async function insertParts(db: Db, backfill: string, parts: readonly NewPart[]): Promise<void> {
  await db.exec(sql`
    insert into backfill_trigger (backfill_id, trigger_id, start_at, end_at, period_ms, cron, timezone, from_at, to_at,
                                  instants, pieces)
    select ${backfill}::uuid, t.id, t.start_at, t.end_at, t.period_ms, t.cron, t.timezone, p.from_at, p.to_at, p.instants,
           p.pieces
      from unnest(
        ${parts.map((p) => p.trigger.id)}::uuid[],
        ${parts.map((p) => new Date(p.fromMs))}::timestamptz[], ${parts.map((p) => new Date(p.toMs))}::timestamptz[],
        ${parts.map((p) => p.instants)}::integer[], ${parts.map((p) => p.pieces)}::integer[]
      ) as p (id, from_at, to_at, instants, pieces)
      join trigger t on t.id = p.id`);
}

export type BackfillRow = {
  readonly id: string;
  readonly job_id: string;
  readonly job_name: string;
  readonly project: string;
  readonly name: string | null;
  readonly triggers: string[];
  readonly first_at: Date;
  readonly last_at: Date;
  readonly policy: 'earliest' | 'latest' | 'random';
  readonly priority: 'backfill' | 'low' | 'normal' | 'high';
  readonly only_missing: boolean;
  readonly state: 'running' | 'done' | 'cancelled';
  readonly total: number;
  readonly fired: number;
  readonly skipped: number;
  readonly actor: string;
  readonly created_at: Date;
  readonly ended_at: Date | null;
};

const rowsWhere = (condition: ReturnType<typeof sql>, limit: number) => sql`
    select b.id, b.job_id, job.name as job_name, project.name as project, b.name, b.first_at, b.last_at, b.policy,
           b.priority, b.only_missing, b.state, b.actor, b.created_at, b.ended_at, t.triggers, t.total, t.fired, t.skipped
      from backfill b
      join job on job.id = b.job_id
      join project on project.id = job.project_id
     cross join lateral (
       select array_agg(trigger.name order by trigger.name) as triggers, sum(p.instants)::integer as total,
              sum(p.fired)::integer as fired, sum(p.skipped)::integer as skipped
         from backfill_trigger p
         join trigger on trigger.id = p.trigger_id
        where p.backfill_id = b.id
     ) as t
     where ${condition}
     order by b.id desc
     limit ${limit}`;

/** Newest first. */
export function listBackfills(
  db: Db,
  page: { job?: string; before: string | undefined; limit: number },
): Promise<BackfillRow[]> {
  const ofJob = page.job === undefined ? sql`true` : sql`b.job_id = ${page.job}`;
  const further = page.before === undefined ? sql`true` : sql`b.id < ${page.before}`;
  return db.rows<BackfillRow>(rowsWhere(sql`${ofJob} and ${further}`, page.limit));
}

export function findBackfill(db: Db, id: string): Promise<BackfillRow | undefined> {
  return db.maybeOne<BackfillRow>(rowsWhere(sql`b.id = ${id}`, 1));
}

export function findBackfillNamed(db: Db, job: string, name: string): Promise<BackfillRow | undefined> {
  return db.maybeOne<BackfillRow>(rowsWhere(sql`b.job_id = ${job} and b.name = ${name}`, 1));
}

export type Tally = { readonly counts: Readonly<Record<string, number>>; readonly whole: boolean };

/** Counts the runs by state, now or at the end of the backfill. While it runs, at most `most` finished runs are counted. */
export async function findTally(db: Db, id: string, most: number): Promise<Tally | undefined> {
  const row = await db.maybeOne<{ tally: Tally['counts'] | null }>(sql`select tally from backfill where id = ${id}`);
  if (row === undefined) return undefined;
  if (row.tally !== null) return { counts: row.tally, whole: true };
  return db.one<Tally>(sql`select counts, whole from tally_backfill(${id}::uuid, ${most}::integer)`);
}

/** Returns whether it was running. Waits for a piece in progress; after the commit, the backfill fires nothing more. */
export async function markCancelled(db: Db, id: string): Promise<boolean> {
  return (await db.exec(sql`update backfill set state = 'cancelled' where id = ${id} and state = 'running'`)) > 0;
}
