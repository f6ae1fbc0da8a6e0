/** Statements that find, write and remove the parts of a job. Each handles a whole set; the caller holds the transaction. */
import { type Db, sql } from '../kernel/sql.ts';
import type { JobDefinition, TaskDefinition, TriggerDefinition } from './definition.ts';
import { laneOf } from '../contract/lane.ts';
import { newId } from '../kernel/id.ts';
import { locks } from '../postgres/locks.ts';
import { formatWork } from './version-work.ts';

export type JobRow = {
  id: string;
  project_id: string;
  name: string;
  paused: boolean;
  version: number;
  deleted_at: Date | null;
};

export async function findProjectId(db: Db, name: string): Promise<string | undefined> {
  return (
    await db.maybeOne<{ id: string }>(sql`select id from project where name = ${name} and deleted_at is null for share`)
  )?.id;
}

/** Locks the row, so that applications of one job run one after another. */
export function lockJob(
  db: Db,
  job: { id: string | null; projectId: string; name: string },
): Promise<JobRow | undefined> {
  const which =
    job.id === null
      ? sql`project_id = ${job.projectId} and name = ${job.name} and deleted_at is null`
      : sql`id = ${job.id}`;
  return db.maybeOne<JobRow>(sql`
    select id, project_id, name, paused, version, deleted_at from job where ${which} for update`);
}

export async function readStoredDocument(db: Db, jobId: string, version: number): Promise<unknown> {
  const row = await db.maybeOne<{ definition: unknown }>(sql`
    select definition from job_version where job_id = ${jobId} and version = ${version}`);
  return row?.definition;
}

export interface JobWrite {
  readonly id: string;
  readonly projectId: string;
  readonly definition: JobDefinition;
  readonly paused: boolean;
  readonly version: number;
  readonly at: Date;
}

export async function writeJob(db: Db, job: JobWrite): Promise<void> {
  const { name, description, retention } = job.definition;
  await db.exec(sql`
    insert into job (id, project_id, name, description, paused, version, retention, created_at, updated_at)
    values (${job.id}, ${job.projectId}, ${name}, ${description}, ${job.paused}, ${job.version},
            ${JSON.stringify(retention)}, ${job.at}, ${job.at})
    on conflict (id) do update set
      project_id = excluded.project_id, name = excluded.name, description = excluded.description, paused = excluded.paused, version = excluded.version,
      retention = excluded.retention, updated_at = excluded.updated_at, deleted_at = null`);
}

export async function writeVersion(db: Db, job: JobWrite, actor: string): Promise<void> {
  await db.exec(sql`
    insert into job_version (job_id, version, definition, work, actor, at)
    values (${job.id}, ${job.version}, ${JSON.stringify(job.definition.document)}::json,
            ${formatWork(job.definition)}::json, ${actor}, ${job.at})`);
}

const asDate = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

/** Returns name → id. Existing triggers keep their marks. */
export async function writeTriggers(
  db: Db,
  jobId: string,
  triggers: readonly TriggerDefinition[],
): Promise<Map<string, string>> {
  const rows = await db.rows<{ id: string; name: string }>(sql`
    insert into trigger (id, job_id, name, start_at, end_at, period_ms, cron, timezone, offset_ms, catchup, catchup_window_ms)
    select t.id, ${jobId}::uuid, t.name, t.start_at, t.end_at, t.period_ms, t.cron, t.timezone, t.offset_ms, t.catchup, t.window_ms
      from unnest(
        ${triggers.map(() => newId())}::uuid[],
        ${triggers.map((t) => t.name)}::text[],
        ${triggers.map((t) => asDate(t.startMs))}::timestamptz[],
        ${triggers.map((t) => asDate(t.endMs))}::timestamptz[],
        ${triggers.map((t) => t.periodMs)}::bigint[],
        ${triggers.map((t) => t.cron)}::text[],
        ${triggers.map((t) => t.timezone)}::text[],
        ${triggers.map((t) => t.offsetMs)}::bigint[],
        ${triggers.map((t) => t.catchup)}::text[],
        ${triggers.map((t) => t.catchupWindowMs)}::bigint[]
      ) as t (id, name, start_at, end_at, period_ms, cron, timezone, offset_ms, catchup, window_ms)
    on conflict (job_id, name) do update set
      start_at = excluded.start_at, end_at = excluded.end_at, period_ms = excluded.period_ms, cron = excluded.cron,
      timezone = excluded.timezone, offset_ms = excluded.offset_ms, catchup = excluded.catchup,
      catchup_window_ms = excluded.catchup_window_ms, removed_at = null
    returning id, name`);
  return new Map(rows.map((row) => [row.name, row.id]));
}

/** Returns name → id. */
export async function writeTasks(
  db: Db,
  job: JobWrite,
  tasks: readonly TaskDefinition[],
): Promise<Map<string, string>> {
  const rows = await db.rows<{ id: string; name: string }>(sql`
    insert into task (id, job_id, name, version, lane, threshold, paused, max_attempts, retry_delay_ms, retry_factor,
                      retry_cap_ms, retry_jitter, retry_on)
    select t.id, ${job.id}::uuid, t.name, ${job.version}::integer, t.lane, t.threshold, ${job.paused}::boolean, t.attempts, t.delay_ms, t.factor,
           t.cap_ms, t.jitter, string_to_array(t.causes, ',')::run_state[]
      from unnest(
        ${tasks.map(() => newId())}::uuid[],
        ${tasks.map((t) => t.name)}::text[],
        ${tasks.map((t) => laneOf(t.runtime.kind, t.queue))}::text[],
        ${tasks.map((t) => t.threshold)}::integer[],
        ${tasks.map((t) => t.retry.maxAttempts)}::integer[],
        ${tasks.map((t) => t.retry.delayMs)}::bigint[],
        ${tasks.map((t) => t.retry.factor)}::float8[],
        ${tasks.map((t) => t.retry.capMs)}::bigint[],
        ${tasks.map((t) => t.retry.jitter)}::float8[],
        ${tasks.map((t) => t.retry.on.join(','))}::text[]
      ) as t (id, name, lane, threshold, attempts, delay_ms, factor, cap_ms, jitter, causes)
    on conflict (job_id, name) do update set
      version = excluded.version, lane = excluded.lane, threshold = excluded.threshold, paused = excluded.paused,
      max_attempts = excluded.max_attempts, retry_delay_ms = excluded.retry_delay_ms,
      retry_factor = excluded.retry_factor, retry_cap_ms = excluded.retry_cap_ms,
      retry_jitter = excluded.retry_jitter, retry_on = excluded.retry_on, removed_at = null
    returning id, name`);
  return new Map(rows.map((row) => [row.name, row.id]));
}

/** The maximum time of a stage that began with the former threshold, with a wide margin. */
const maxStageTime = '1 minute';

/**
 * Releases tokens whose count reaches a lowered threshold. The row in `lowered` makes the scheduler check again for a while,
 * because a concurrent stage may still count by the former threshold.
 */
export async function lowerThresholds(db: Db, taskIds: readonly string[], at: Date): Promise<void> {
  await db.exec(sql`select hold_full_tokens(${taskIds}::uuid[])`);
  await db.exec(sql`
    insert into lowered (task_id, until)
    select id, ${at}::timestamptz + ${maxStageTime}::interval from unnest(${taskIds}::uuid[]) as id
     order by 1
    on conflict (task_id) do update set until = excluded.until`);
}

/** Locks the unfinished runs of a job. Changing or removing tasks locks these first, before tokens and limits. */
export async function lockRuns(db: Db, jobId: string): Promise<void> {
  await db.exec(sql`
    select 1 from live where task_id in (select id from task where job_id = ${jobId}) order by id for update`);
}

/** Whether the job or any of its tasks has a limit. */
export async function isLimited(db: Db, jobId: string): Promise<boolean> {
  const { limited } = await db.one<{ limited: boolean }>(sql`
    select exists (select 1 from task where job_id = ${jobId} and gates is not null) as limited`);
  return limited;
}

/** Returns the names of pools that it created. */
export async function setLimits(
  db: Db,
  { id, definition, at }: JobWrite,
  tasks: ReadonlyMap<string, string>,
): Promise<string[]> {
  const { made } = await db.one<{ made: string[] }>(sql`
    select set_limits(
      ${id}::uuid, ${definition.maxActiveInstants}::integer, ${definition.overlap}::text,
      ${definition.tasks.map((t) => tasks.get(t.name))}::uuid[],
      ${definition.tasks.map((t) => t.maxRunning)}::integer[],
      ${definition.tasks.map((t) => t.pool)}::text[],
      ${at}::timestamptz) as made`);
  return made;
}

/** The names of pools that setLimits would create. */
export async function findMissingPools(db: Db, { tasks }: JobDefinition): Promise<string[]> {
  const rows = await db.rows<{ name: string }>(sql`
    select distinct p.name
      from unnest(${tasks.map((t) => t.pool)}::text[]) as p (name)
     where p.name is not null and not exists (select 1 from gate where gate.name = p.name)
     order by 1`);
  return rows.map((row) => row.name);
}

/** Holds the queued runs of newly paused tasks, and returns their permits. */
export async function parkRuns(db: Db, tasks: readonly string[], at: Date): Promise<void> {
  await db.exec(sql`select park_runs(${tasks}::uuid[], ${at}::timestamptz)`);
}

/** The current thresholds, by task name. */
export async function readThresholds(db: Db, jobId: string): Promise<Map<string, number>> {
  const rows = await db.rows<{ name: string; threshold: number }>(sql`
    select name, threshold from task where job_id = ${jobId}`);
  return new Map(rows.map((row) => [row.name, row.threshold]));
}

/**
 * Makes applications with references to other jobs run one at a time. Two jobs that refer to each other would deadlock:
 * each application would hold rows that the other one needs.
 */
export async function lockReferences(db: Db): Promise<void> {
  const [space, number] = locks.refer;
  await db.exec(sql`select pg_advisory_xact_lock(${space}::integer, ${number}::integer)`);
}

/** Locks these tasks and triggers against removal until the end of the transaction. Returns whether all of them exist. */
export async function lockForeign(db: Db, ids: readonly string[]): Promise<boolean> {
  const tasks = await db.exec(sql`
    select 1 from task where id = any (${ids}::uuid[]) and removed_at is null order by id for share`);
  const triggers = await db.exec(sql`
    select 1 from trigger where id = any (${ids}::uuid[]) and removed_at is null order by id for share`);
  return tasks + triggers === new Set(ids).size;
}

/** Locks the job's triggers by id, which is the lock order of the stages, before they are written in document order. */
export async function lockTriggers(db: Db, jobId: string): Promise<void> {
  await db.exec(sql`select 1 from trigger where job_id = ${jobId} order by id for no key update`);
}

/** Removes triggers that the document no longer names. They neither fire nor are caught up. */
export async function removeTriggers(db: Db, jobId: string, keep: readonly string[], at: Date): Promise<void> {
  await db.exec(sql`
    update trigger set removed_at = ${at}
     where job_id = ${jobId} and removed_at is null and not id = any (${keep}::uuid[])`);
  await db.exec(sql`
    delete from catchup
     where trigger_id in (select id from trigger where job_id = ${jobId} and removed_at is not null)`);
}

/** Tasks that the document no longer names. */
export async function findOtherTasks(db: Db, jobId: string, keep: readonly string[]): Promise<string[]> {
  const rows = await db.rows<{ id: string }>(sql`
    select id from task
     where job_id = ${jobId} and removed_at is null and not id = any (${keep}::uuid[])
     order by id`);
  return rows.map((row) => row.id);
}

/** Takes tasks out of the graph. Running runs may finish. It appends events, so the caller must lock nothing after it. */
export async function retireTasks(db: Db, tasks: readonly string[], who: { actor: string; at: Date }): Promise<void> {
  await db.exec(sql`select retire_tasks(${tasks}::uuid[], false, 'task removed', ${who.actor}, ${who.at})`);
}

/** Tasks of other jobs that depend on one of these tasks, or on a removed trigger of this job. Their edges are removed too. */
export function findOrphanedDependents(
  db: Db,
  jobId: string,
  gone: readonly string[],
): Promise<{ project: string; job: string; task: string; parent: string }[]> {
  return db.rows(sql`
    select project.name as project, job.name as job, child.name as task, gone.name as parent
      from (
        select e.child_id, p.name from task_edge e join task p on p.id = e.parent_id
         where p.id = any (${gone}::uuid[])
        union all
        select e.task_id, t.name from trigger_edge e join trigger t on t.id = e.trigger_id
         where t.job_id = ${jobId} and t.removed_at is not null
      ) as gone (child_id, name)
      join task child on child.id = gone.child_id
      join job on job.id = child.job_id
      join project on project.id = job.project_id
     where child.job_id <> ${jobId}
     order by 1, 2, 3, 4`);
}

/** Drops the edges into the job's tasks, and those out of triggers it no longer has. */
export async function dropEdges(db: Db, jobId: string): Promise<void> {
  await db.exec(sql`
    delete from trigger_edge
     where task_id in (select id from task where job_id = ${jobId})
        or trigger_id in (select id from trigger where job_id = ${jobId} and removed_at is not null)`);
  await db.exec(sql`delete from task_edge where child_id in (select id from task where job_id = ${jobId})`);
}

export interface EdgeWrite {
  readonly parentId: string;
  readonly childId: string;
  readonly kind: string;
  readonly offsetMs: number;
}

export async function writeEdges(db: Db, edges: readonly EdgeWrite[]): Promise<void> {
  const fromTriggers = edges.filter((edge) => edge.kind === 'trigger');
  const fromTasks = edges.filter((edge) => edge.kind !== 'trigger');
  await db.exec(sql`
    insert into trigger_edge (trigger_id, task_id, offset_ms)
    select * from unnest(
      ${fromTriggers.map((e) => e.parentId)}::uuid[],
      ${fromTriggers.map((e) => e.childId)}::uuid[],
      ${fromTriggers.map((e) => e.offsetMs)}::bigint[])`);
  await db.exec(sql`
    insert into task_edge (parent_id, child_id, kind, offset_ms)
    select * from unnest(
      ${fromTasks.map((e) => e.parentId)}::uuid[],
      ${fromTasks.map((e) => e.childId)}::uuid[],
      ${fromTasks.map((e) => e.kind)}::edge_kind[],
      ${fromTasks.map((e) => e.offsetMs)}::bigint[])`);
}

export interface Foreign {
  readonly project: string;
  readonly job: string;
  readonly kind: 'task' | 'trigger';
  readonly name: string;
}

/** The ids of tasks and triggers of other jobs, in the given order; null if there is none. */
export async function resolveForeign(db: Db, wanted: readonly Foreign[]): Promise<(string | null)[]> {
  const rows = await db.rows<{ id: string | null }>(sql`
    select coalesce(task.id, trigger.id) as id
      from unnest(
        ${wanted.map((w) => w.project)}::text[], ${wanted.map((w) => w.job)}::text[],
        ${wanted.map((w) => w.kind)}::text[], ${wanted.map((w) => w.name)}::text[]
      ) with ordinality as w (project, job, kind, name, n)
      left join project on project.name = w.project and project.deleted_at is null
      left join job on job.project_id = project.id and job.name = w.job and job.deleted_at is null
      left join task on w.kind = 'task' and task.job_id = job.id and task.name = w.name and task.removed_at is null
      left join trigger on w.kind = 'trigger' and trigger.job_id = job.id and trigger.name = w.name
                       and trigger.removed_at is null
     order by w.n`);
  return rows.map((row) => row.id);
}
