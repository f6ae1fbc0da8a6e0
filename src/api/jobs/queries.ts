/** Statements that read jobs: their documents and derived data. Deleted jobs and removed parts are not found. */
import { type Db, sql } from '../../kernel/sql.ts';
import type { State } from '../shapes.ts';
import { type InstantPage, latestInstants } from '../instants/latest-instants.ts';
import { listedText } from '../page-size.ts';
import { runCounts, totals } from '../runs/counts.ts';
import { tokenState } from '../instants/token-state.ts';

export type JobRow = {
  readonly id: string;
  readonly project_id: string;
  readonly name: string;
  readonly description: string;
  readonly paused: boolean;
};

export function findJob(db: Db, id: string): Promise<JobRow | undefined> {
  return db.maybeOne<JobRow>(sql`
    select id, project_id, name, description, paused
      from job
     where id = ${id} and deleted_at is null`);
}

export function findJobNamed(db: Db, projectId: string, name: string): Promise<JobRow | undefined> {
  return db.maybeOne<JobRow>(sql`
    select id, project_id, name, description, paused
      from job
     where project_id = ${projectId} and name = ${name} and deleted_at is null`);
}

export type ListedJob = JobRow & { readonly project: string; readonly version: number; readonly updated_at: Date };

export interface JobsPage {
  readonly limit: number;
  /** The project and name of the last job of the previous page. */
  readonly after: readonly [string, string] | undefined;
}

export function listJobs(db: Db, page: JobsPage): Promise<ListedJob[]> {
  const further = page.after
    ? sql`(project.name, job.name) > (${page.after[0]}::text, ${page.after[1]}::text)`
    : sql`true`;
  return db.rows<ListedJob>(sql`
    select job.id, job.project_id, job.name, ${listedText(sql`job.description`)} as description, job.paused,
           project.name as project, job.version, job.updated_at
      from job
      join project on project.id = job.project_id
     where job.deleted_at is null and ${further}
     order by project.name, job.name
     limit ${page.limit}`);
}

export type JobWithCounts = JobRow & {
  readonly project: string;
  readonly version: number;
  readonly raw_definition: string;
  readonly active_tasks: number;
  readonly waiting_tasks: number;
  readonly succeeded_tasks_last_hour: number;
  readonly failed_tasks_last_hour: number;
  readonly error_tasks_last_hour: number;
};

export function findJobWithCounts(
  db: Db,
  id: string,
  at: Date,
  withDocument: boolean,
): Promise<JobWithCounts | undefined> {
  return db.maybeOne<JobWithCounts>(sql`
    with tasks as (
      select id
        from task
       where job_id = ${id}
    ),
    counts as (${runCounts(at)})
    select job.id, job.project_id, job.name, job.description, job.paused, project.name as project, job.version,
           case when ${withDocument}::boolean
             then (select definition::text
                     from job_version
                    where job_version.job_id = job.id and job_version.version = job.version)
             else ''
           end as raw_definition,
           coalesce(sum(counts.running), 0)::integer as active_tasks, ${totals}
      from job
      join project on project.id = job.project_id
      left join counts on true
     where job.id = ${id} and job.deleted_at is null
     group by job.id, project.name`);
}

export type VersionRow = { readonly version: number; readonly at: Date; readonly actor: string };

export function listVersions(
  db: Db,
  job: string,
  page: { limit: number; before: number | undefined },
): Promise<VersionRow[]> {
  const earlier = page.before === undefined ? sql`true` : sql`version < ${page.before}`;
  return db.rows<VersionRow>(sql`
    select version, at, actor
      from job_version
     where job_id = ${job} and ${earlier}
     order by version desc
     limit ${page.limit}`);
}

export function findVersion(
  db: Db,
  job: string,
  version: number,
): Promise<(VersionRow & { readonly definition: unknown }) | undefined> {
  return db.maybeOne(sql`
    select version, at, actor, definition
      from job_version
     where job_id = ${job} and version = ${version}`);
}

export async function countTasks(db: Db, job: string): Promise<number> {
  const { tasks } = await db.one<{ tasks: number }>(sql`
    select count(*)::integer as tasks
      from task
     where job_id = ${job} and removed_at is null`);
  return tasks;
}

export function listTasks(db: Db, job: string): Promise<{ task_id: string; name: string }[]> {
  return db.rows(sql`
    select id as task_id, name
      from task
     where job_id = ${job} and removed_at is null
     order by name`);
}

export type SeenTask = {
  readonly task_id: string;
  readonly name: string;
  /** The instant of an unfinished run, else of the run that ended last, else of the newest token. */
  readonly latest_trigger_datetime: Date | null;
  readonly latest_state: State | null;
};

/** Finds the latest instant of each task at the ends of three indexes. */
export function listSeenTasks(db: Db, job: string): Promise<SeenTask[]> {
  return db.rows<SeenTask>(sql`
    select task.id as task_id, task.name, seen.instant as latest_trigger_datetime, seen.state as latest_state
      from task
      left join lateral (
        select t.instant, ${tokenState} as state
          from token t
         where t.task_id = task.id
           and t.instant = coalesce(
             (select live.instant from live where live.task_id = task.id order by live.instant desc limit 1),
             (select run.instant from run where run.task_id = task.id order by run.finished_at desc limit 1),
             (select token.instant from token where token.task_id = task.id order by token.instant desc limit 1))
      ) as seen on true
     where task.job_id = ${job} and task.removed_at is null
     order by task.name`);
}

export type TriggerRow = {
  readonly trigger_id: string;
  readonly trigger_name: string;
  readonly start_datetime: Date;
  readonly end_datetime: Date | null;
  readonly earliest_trigger_datetime: Date | null;
  readonly latest_trigger_datetime: Date | null;
  readonly period: number | null;
  readonly cron: string | null;
  readonly timezone: string | null;
  readonly trigger_offset: number | null;
  readonly catchup: string;
};

/** A row of `trigger` with Waterwheel's names, and spans in seconds. */
export const triggerColumns = sql`
           trigger.id as trigger_id, trigger.name as trigger_name,
           trigger.start_at as start_datetime, trigger.end_at as end_datetime,
           trigger.earliest as earliest_trigger_datetime, trigger.latest as latest_trigger_datetime,
           trigger.period_ms / 1000.0::float8 as period, trigger.cron, trigger.timezone,
           nullif(trigger.offset_ms, 0) / 1000.0::float8 as trigger_offset, trigger.catchup`;

export function listTriggers(db: Db, job: string): Promise<TriggerRow[]> {
  return db.rows<TriggerRow>(sql`
    select ${triggerColumns}
      from trigger
     where job_id = ${job} and removed_at is null
     order by name`);
}

export type DurationRow = { readonly trigger_datetime: Date; readonly duration: number; readonly task_name: string };

/** The longest run of each task at the latest instants that have tokens, in seconds. */
export function listDurations(db: Db, job: string, page: InstantPage): Promise<DurationRow[]> {
  return db.rows<DurationRow>(sql`
    with tasks as (
      select id, name
        from task
       where job_id = ${job} and removed_at is null
    ),
    instants as (
      ${latestInstants(page)}
    )
    select run.instant as trigger_datetime, tasks.name as task_name,
           max(extract(epoch from run.finished_at - run.started_at))::float8 as duration
      from tasks
     cross join instants
      join run on run.task_id = tasks.id and run.instant = instants.instant
     where run.state in ('success', 'failure', 'timeout') and run.started_at is not null
     group by run.instant, tasks.name
     order by run.instant desc, tasks.name`);
}
