/** Statements for the overview of jobs. The page bounds their cost; a filter also depends on the number of jobs. */
import { allOf, type Db, type Sql, sql } from '../../kernel/sql.ts';
import { queuedUpTo } from './view-endpoints.ts';
import { failingTasks } from '../tasks/failing-tasks.ts';
import { tokenTimes } from '../instants/queries.ts';
import { patternsOf, wordsIn } from '../overview/name-search.ts';
import { tokenState } from '../instants/token-state.ts';
import { listedText } from '../page-size.ts';

export interface JobFilter {
  readonly words: readonly string[];
  readonly project: string | undefined;
  readonly show: 'all' | 'running' | 'paused';
  /** Only these jobs, if given. */
  readonly among: readonly string[] | undefined;
}

/** Bounded by the places of the workers. */
const runningJobs = sql`
      select task.job_id
        from live
        join task on task.id = live.task_id
       where live.worker_id is not null`;

const shows: Readonly<Record<JobFilter['show'], Sql>> = {
  all: sql`true`,
  paused: sql`job.paused`,
  running: sql`job.id in (${runningJobs})`,
};

/** Jobs with a failing task. */
export async function listFailingJobs(db: Db): Promise<string[]> {
  const rows = await db.rows<{ job_id: string }>(sql`
    select distinct failing.job_id from (${failingTasks}) as failing`);
  return rows.map((row) => row.job_id);
}

const filtered = ({ words, project, show, among }: JobFilter): Sql => sql`
      from job
      join project on project.id = job.project_id
     where ${allOf([
       sql`job.deleted_at is null`,
       project === undefined ? sql`true` : sql`job.project_id = ${project}`,
       words.length === 0
         ? sql`true`
         : wordsIn(sql`project.name || '/' || job.name || ' ' || job.description`, patternsOf(words)),
       shows[show],
       among === undefined ? sql`true` : sql`job.id = any (${among}::uuid[])`,
     ])}`;

export type GlanceRow = {
  readonly id: string;
  readonly project_id: string;
  readonly project: string;
  readonly name: string;
  readonly description: string;
  readonly paused: boolean;
  readonly version: number;
};

export interface GlancePage extends JobFilter {
  readonly limit: number;
  /** The project and name of the last job of the previous page. */
  readonly after: readonly [string, string] | undefined;
}

export function listGlances(db: Db, page: GlancePage): Promise<GlanceRow[]> {
  const further = page.after
    ? sql`(project.name, job.name) > (${page.after[0]}::text, ${page.after[1]}::text)`
    : sql`true`;
  return db.rows<GlanceRow>(sql`
    select job.id, project.id as project_id, project.name as project, job.name,
           ${listedText(sql`job.description`)} as description, job.paused, job.version
      ${filtered(page)} and ${further}
     order by project.name, job.name
     limit ${page.limit}`);
}

const maxCountedJobs = 100_000;

export async function countGlances(db: Db, filter: JobFilter): Promise<number> {
  const row = await db.one<{ total: number }>(sql`
    select count(*)::integer as total
      from (select 1 ${filtered(filter)} limit ${maxCountedJobs}) as counted`);
  return row.total;
}

export type WorkRow = {
  readonly job_id: string;
  readonly tasks: number;
  readonly running: number;
  readonly queued: number;
};

/** Includes runs of removed tasks, until they end. The inner `order by` makes the planner use the index live_task. */
export function listWork(db: Db, jobs: readonly string[]): Promise<WorkRow[]> {
  return db.rows<WorkRow>(sql`
    with running as (
      select task.job_id, count(*) as n
        from live
        join task on task.id = live.task_id
       where live.worker_id is not null
       group by 1
    )
    select j.id as job_id,
           (select count(*)::integer from task where task.job_id = j.id and task.removed_at is null) as tasks,
           coalesce((select running.n from running where running.job_id = j.id), 0)::integer as running,
           (select count(*)::integer
              from (
                select 1
                  from task
                 cross join lateral (
                   select 1
                     from live
                    where live.task_id = task.id and live.worker_id is null
                    order by live.instant
                    limit ${queuedUpTo}
                 ) as queued
                 where task.job_id = j.id
                 limit ${queuedUpTo}
              ) as counted) as queued
      from unnest(${jobs}::uuid[]) as j (id)`);
}

export type RecentRow = {
  readonly job_id: string;
  readonly instant: Date;
  /** The number of tokens by Waterwheel's state. */
  readonly states: Readonly<Record<string, number>>;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
};

/**
 * The latest instants of each job, up to its own number, oldest first. `offset 0` and `limit 1` make the planner probe an index
 * at every step; with joins, it would read all tasks.
 */
export function listRecent(db: Db, wanted: readonly { job: string; instants: number }[]): Promise<RecentRow[]> {
  return db.rows<RecentRow>(sql`
    with wanted as (
      select *
        from unnest(${wanted.map(({ job }) => job)}::uuid[], ${wanted.map(({ instants }) => instants)}::integer[])
               as w (job_id, n)
    ),
    instants as materialized (
      select wanted.job_id, latest.instant
        from wanted
       cross join lateral (
         select distinct near.instant
           from task
          cross join lateral (
            select token.instant
              from token
             where token.task_id = task.id
             order by token.instant desc
             limit wanted.n
          ) as near
          where task.job_id = wanted.job_id and task.removed_at is null
          order by near.instant desc
          limit wanted.n
       ) as latest
    ),
    counted as (
      select instants.job_id, instants.instant, cell.state, count(*) as n, min(cell.started_at) as started_at,
             max(cell.finished_at) as finished_at
        from instants
       cross join lateral (
         select task.id
           from task
          where task.job_id = instants.job_id and task.removed_at is null
         offset 0
       ) as own
       cross join lateral (
         select ${tokenState} as state, r.started_at, r.finished_at
           from token t
          cross join lateral (${tokenTimes}) as r
          where t.task_id = own.id and t.instant = instants.instant
          limit 1
       ) as cell
       group by 1, 2, 3
    )
    select c.job_id, c.instant, jsonb_object_agg(c.state, c.n) as states, min(c.started_at) as started_at,
           max(c.finished_at) as finished_at
      from counted c
     group by 1, 2
     order by 1, 2`);
}
