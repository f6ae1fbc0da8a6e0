/** Statements of retention that find and delete old rows. Each reads and deletes a bounded number of rows. */
import { type Db, sql } from '../../kernel/sql.ts';

/** A task, and the time before which its runs must have ended to be deleted. */
export interface Cut {
  readonly task: string;
  readonly before: Date;
}

/** The least id and the least instant, where a walk begins. */
export const first = { id: '00000000-0000-0000-0000-000000000000', at: new Date(0) };

/** Reads the next tasks by id. `cuts` are those with runs older than their job keeps. */
export async function findAgedTasks(
  db: Db,
  page: { after: string; limit: number; ageMs: number | null; at: Date },
): Promise<{ seen: number; last: string; cuts: Cut[] }> {
  const rows = await db.rows<{ id: string; before: Date | null; aged: boolean }>(sql`
    select k.id, k.before, coalesce(oldest.finished_at < k.before, false) as aged
      from (
        select task.id,
               ${page.at}::timestamptz - retention_age(job.retention, ${page.ageMs}::bigint) * interval '1 millisecond' as before
          from task
          join job on job.id = task.job_id
         where task.id > ${page.after}
         order by task.id
         limit ${page.limit}
      ) as k
      left join lateral (
        select run.finished_at from run where run.task_id = k.id order by run.finished_at limit 1
      ) as oldest on true
     order by k.id`);
  const cuts = rows.flatMap(({ id, before, aged }) => (aged && before !== null ? [{ task: id, before }] : []));
  return { seen: rows.length, last: rows.at(-1)?.id ?? page.after, cuts };
}

export type JobKeep = { readonly id: string; readonly keep: number | null };

/** The next jobs by id, with the number of runs that each keeps. */
export function readJobKeeps(db: Db, page: { after: string; limit: number; runs: number | null }): Promise<JobKeep[]> {
  return db.rows<JobKeep>(sql`
    select id,
           case when retention ? 'runs' then (retention ->> 'runs')::bigint else ${page.runs}::bigint end as keep
      from job
     where id > ${page.after}
     order by id
     limit ${page.limit}`);
}

/** The excess of runs that is tolerated before the surplus is deleted, because counting reads all runs. */
export const slackOf = (keep: number): number => Math.floor(keep / 10);
/** The largest surplus found by one count, because it is sorted in memory. The next count finds the rest. */
const maxSurplus = 100_000;

export type JobCount = {
  readonly id: string;
  readonly runs: number;
  /** The number of runs to delete now, and the time before which they ended; 0 and null if there are not too many. */
  readonly surplus: number;
  readonly before: Date | null;
};

/**
 * Counts the finished runs of these jobs. For a job with too many, `before` is the end of the oldest run to keep. Runs that
 * ended at the same moment are kept or deleted together, so never fewer than `keep` stay. One statement is one snapshot, so
 * `before` is right whatever others delete meanwhile.
 */
export function countRuns(db: Db, jobs: readonly { id: string; keep: number }[]): Promise<JobCount[]> {
  return db.rows<JobCount>(sql`
    select c.id, c.runs, c.surplus,
           case when c.surplus > 0 then (
             select o.finished_at
               from task
              cross join lateral (
                select run.finished_at
                  from run
                 where run.task_id = task.id
                 order by run.finished_at
                 limit c.surplus + 1
              ) as o
              where task.job_id = c.id
              order by o.finished_at
             offset c.surplus
              limit 1
           ) end as before
      from (
        select w.id, n.runs,
               case when n.runs > w.keep + w.slack then least(n.runs - w.keep, ${maxSurplus}) else 0 end as surplus
          from unnest(
            ${jobs.map((job) => job.id)}::uuid[], ${jobs.map((job) => job.keep)}::bigint[],
            ${jobs.map((job) => slackOf(job.keep))}::bigint[]) as w (id, keep, slack)
         cross join lateral (
           select count(*) as runs
             from task
             join run on run.task_id = task.id
            where task.job_id = w.id
         ) as n
      ) as c`);
}

export async function findTasks(db: Db, jobs: readonly string[]): Promise<{ id: string; job_id: string }[]> {
  return db.rows(sql`select id, job_id from task where job_id = any (${jobs}::uuid[]) order by id`);
}

export type OldRun = { readonly id: string; readonly task_id: string; readonly finished_at: Date };

/** Runs to delete, task by task, oldest first. `from` skips rows that the pass has already deleted. */
export function findOldRuns(db: Db, cuts: readonly (Cut & { from: Date })[], limit: number): Promise<OldRun[]> {
  return db.rows<OldRun>(sql`
    select r.id, r.task_id, r.finished_at
      from unnest(
        ${cuts.map((cut) => cut.task)}::uuid[], ${cuts.map((cut) => cut.from)}::timestamptz[],
        ${cuts.map((cut) => cut.before)}::timestamptz[]) as c (task_id, from_at, before)
     cross join lateral (
       select run.id, run.task_id, run.finished_at
         from run
        where run.task_id = c.task_id and run.finished_at >= c.from_at and run.finished_at < c.before
        order by run.finished_at
        limit ${limit}
     ) as r
     limit ${limit}`);
}

/** Runs of nodes that ended before that time, oldest first. They have no task, and their number is not limited. */
export async function findOldNodeRuns(db: Db, before: Date, limit: number): Promise<string[]> {
  const rows = await db.rows<{ id: string }>(sql`
    select id
      from run
     where task_id is null and finished_at < ${before}
     order by finished_at
     limit ${limit}`);
  return rows.map(({ id }) => id);
}

/** Allows deleting firings that counted tokens of these tasks, as far as they can never be needed again (I1). */
export async function raiseLowWaterOf(db: Db, tasks: readonly string[]): Promise<boolean> {
  const row = await db.one<{ raised: boolean }>(sql`
    select raise_low_water(array(
      select distinct trigger_id from trigger_edge where task_id = any (${tasks}::uuid[]))) as raised`);
  return row.raised;
}

export async function raiseLowWater(db: Db, triggers: readonly string[]): Promise<boolean> {
  return (await db.one<{ raised: boolean }>(sql`select raise_low_water(${triggers}::uuid[]) as raised`)).raised;
}

export type Forgotten = {
  readonly runs: number;
  readonly tokens: number;
  readonly firings: number;
  readonly instants: number;
  readonly chunks: number;
  /** Call again for the same runs. */
  readonly more: boolean;
};

export function forgetRuns(db: Db, runs: readonly string[], chunks: number): Promise<Forgotten> {
  return db.one<Forgotten>(sql`
    select runs, tokens, firings, instants, chunks, more from forget_runs(${runs}::uuid[], ${chunks}::integer)`);
}

/** The position of a walk along a table, and the rows that it read and deleted on this stretch. */
export interface Stretch {
  readonly seen: number;
  readonly gone: number;
  readonly id: string;
  readonly at: Date;
}

export interface Walk {
  readonly id: string;
  readonly at: Date;
  readonly limit: number;
  readonly ageMs: number | null;
  readonly now: Date;
}

const walkArguments = (w: Walk) => sql`
  ${w.id}::uuid, ${w.at}::timestamptz, ${w.limit}::integer, ${w.ageMs}::bigint, ${w.now}::timestamptz`;

type StretchRow = { seen: number | null; gone: number | null; id: string | null; at: Date | null };

const parseStretch = (row: StretchRow): Stretch => ({
  seen: row.seen ?? 0,
  gone: row.gone ?? 0,
  id: row.id ?? first.id,
  at: row.at ?? first.at,
});

export async function sweepTokens(db: Db, walk: Walk): Promise<Stretch> {
  return parseStretch(
    await db.one(sql`select seen, gone, task_id as id, instant as at from sweep_tokens(${walkArguments(walk)})`),
  );
}

export async function sweepInstants(db: Db, walk: Walk): Promise<Stretch> {
  return parseStretch(
    await db.one(sql`select seen, gone, job_id as id, instant as at from sweep_instants(${walkArguments(walk)})`),
  );
}

/** Returns undefined if another process is pruning now. */
export async function sweepFirings(
  db: Db,
  walk: Walk,
): Promise<(Stretch & { triggers: readonly string[] }) | undefined> {
  const row = await db.one<StretchRow & { triggers: string[] | null }>(sql`
    select seen, gone, trigger_id as id, instant as at, triggers from sweep_firings(${walkArguments(walk)})`);
  return row.seen === null ? undefined : { ...parseStretch(row), triggers: row.triggers ?? [] };
}

/** Deletes at most `most` rows of activity from before that time. */
export function forgetActivity(db: Db, before: Date, most: number): Promise<number> {
  return db.exec(sql`
    delete from activity
     where at in (select at from activity where at < ${before} order by at limit ${most})`);
}

/** Deletes leases of workers that are long gone. */
export function forgetLeases(db: Db, before: Date): Promise<number> {
  return db.exec(sql`delete from lease where until < ${before}`);
}
