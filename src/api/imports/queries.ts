/** Statements of imports. Those that write need the job's lock, taken by `lockImported`. */
import { type Db, type Sql, sql } from '../../kernel/sql.ts';

export type ImportedRow = {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly isDeleted: boolean;
  /** Not paused, started, paused or unpaused since it was imported, or with runs since then. */
  readonly isActive: boolean;
  readonly isStarted: boolean;
  readonly importedVersion: number | null;
  readonly digest: string | null;
  readonly resume: boolean | null;
};

/**
 * Locks jobs, and returns them with what imports noted about them. The lock is a statement of its own: one that waits for it would
 * still see the notes as they were before.
 *
 * Reads the newest run of each task: `limit` with the order of an index, because `exists` would scan tables that were never
 * analysed.
 */
export async function lockImported(db: Db, ids: readonly string[]): Promise<ImportedRow[]> {
  await db.exec(sql`select 1 from job where id = any (${ids}::uuid[]) order by id for update`);
  return db.rows<ImportedRow>(sql`
    select job.id, job.name, job.version, job.deleted_at is not null as "isDeleted",
           imported_job.started_at is not null as "isStarted",
           imported_job.version as "importedVersion", encode(imported_job.digest, 'hex') as digest, imported_job.resume,
           not job.paused
           or imported_job.started_at is not null
           or coalesce(imported_job.version = job.version and imported_job.updated_at <> job.updated_at, false)
           or exists (
             select
               from task
              cross join lateral (
                (select true as is_new from live where task_id = task.id order by instant limit 1)
                union all
                (select finished_at > coalesce(imported_job.updated_at, '-infinity')
                   from run
                  where task_id = task.id
                  order by finished_at desc
                  limit 1)) as ran
              where task.job_id = job.id and ran.is_new
           ) as "isActive"
      from job
      left join imported_job on imported_job.job_id = job.id
     where job.id = any (${ids}::uuid[])
     order by job.id`);
}

export async function findNamesake(db: Db, job: { id: string; project: string; name: string }): Promise<boolean> {
  const row = await db.maybeOne(sql`
    select 1
      from job
      join project on project.id = job.project_id
     where project.name = ${job.project} and project.deleted_at is null
       and job.name = ${job.name} and job.deleted_at is null and job.id <> ${job.id}`);
  return row !== undefined;
}

export interface Note {
  readonly job: string;
  readonly version: number;
  readonly digest: string;
  readonly resume: boolean;
}

/** Call it last: it notes the job as the import leaves it. */
export async function noteImport(db: Db, { job, version, digest, resume }: Note): Promise<void> {
  await db.exec(sql`
    insert into imported_job (job_id, version, digest, resume, updated_at)
    select id, ${version}::integer, decode(${digest}, 'hex'), ${resume}::boolean, updated_at
      from job
     where id = ${job}
    on conflict (job_id) do update set
      version = excluded.version, digest = excluded.digest, resume = excluded.resume, updated_at = excluded.updated_at,
      started_at = null`);
}

export interface Mark {
  readonly name: string;
  readonly earliest: Date | null;
  readonly latest: Date | null;
}

/** Sets what triggers have dealt with. Returns the number of triggers that change. */
export function writeMarks(db: Db, job: string, marks: readonly Mark[]): Promise<number> {
  return db.exec(sql`
    update trigger
       set earliest = mark.earliest, latest = mark.latest
      from unnest(
        ${marks.map((mark) => mark.name)}::text[],
        ${marks.map((mark) => mark.earliest)}::timestamptz[],
        ${marks.map((mark) => mark.latest)}::timestamptz[]
      ) as mark (name, earliest, latest)
     where trigger.job_id = ${job} and trigger.name = mark.name and trigger.removed_at is null
       and (trigger.earliest, trigger.latest) is distinct from (mark.earliest, mark.latest)`);
}

export interface Token {
  readonly task: string;
  readonly instant: Date;
  readonly count: number;
}

/**
 * Makes these the tokens of a paused job, and holds those that are full until it is unpaused. Returns the number of tokens
 * that change. Tokens of tasks that the job does not have are left out.
 */
export async function writeTokens(db: Db, job: string, tokens: readonly Token[]): Promise<number> {
  const { changed } = await db.one<{ changed: number }>(sql`
    with wanted as (
      select task.id as task_id, token.instant, sum(token.count)::integer as count
        from unnest(
          ${tokens.map((token) => token.task)}::text[],
          ${tokens.map((token) => token.instant)}::timestamptz[],
          ${tokens.map((token) => token.count)}::integer[]
        ) as token (task, instant, count)
        join task on task.job_id = ${job} and task.name = token.task and task.removed_at is null
       group by 1, 2
    ),
    gone as (
      delete from token
       using task
       where task.job_id = ${job} and token.task_id = task.id
         and not exists (
           select from wanted where wanted.task_id = token.task_id and wanted.instant = token.instant)
      returning 1
    ),
    written as (
      -- the threshold of a paused task is out of reach (count_tokens)
      insert into token (task_id, instant, count, fire, reach, priority)
      select task_id, instant, count, 0, 2147483647, 'normal'
        from wanted
       order by 1, 2
      on conflict (task_id, instant) do update set count = excluded.count, fire = 0, reach = excluded.reach
       where token.count <> excluded.count
      returning 1
    )
    select (select count(*) from gone)::integer + (select count(*) from written)::integer as changed`);
  if (changed > 0) await holdFull(db, job);
  return changed;
}

async function holdFull(db: Db, job: string): Promise<void> {
  await db.exec(sql`delete from held using task where task.job_id = ${job} and held.task_id = task.id`);
  await db.exec(sql`
    insert into held (task_id, instant, reason)
    select token.task_id, token.instant, 'paused'
      from token
      join task on task.id = token.task_id
     where task.job_id = ${job} and task.removed_at is null and token.count >= task.threshold
     order by 1, 2
    on conflict do nothing`);
}

/** Ends the pause. What is held is released by the scheduler. */
export async function unpauseJobs(db: Db, jobs: readonly string[], at: Date): Promise<void> {
  await db.exec(sql`update job set paused = false, updated_at = ${at} where id = any (${jobs}::uuid[])`);
  await db.exec(sql`
    update task set paused = false where job_id = any (${jobs}::uuid[]) and removed_at is null and paused`);
}

export async function markStarted(db: Db, jobs: readonly string[], at: Date): Promise<void> {
  await db.exec(sql`update imported_job set started_at = ${at} where job_id = any (${jobs}::uuid[])`);
}

export interface Retry {
  readonly run: string;
  readonly job: string;
  readonly task: string;
  readonly instant: Date;
  readonly attempt: number;
  readonly priority: string;
  readonly due: Date;
}

export async function insertRetries(db: Db, retries: readonly Retry[]): Promise<void> {
  await db.exec(sql`
    insert into retry (run_id, task_id, instant, attempt, priority, due_at)
    select distinct on (retry.run) retry.run, task.id, retry.instant, retry.attempt, retry.priority, retry.due
      from unnest(
        ${retries.map((retry) => retry.run)}::uuid[],
        ${retries.map((retry) => retry.job)}::uuid[],
        ${retries.map((retry) => retry.task)}::text[],
        ${retries.map((retry) => retry.instant)}::timestamptz[],
        ${retries.map((retry) => retry.attempt)}::integer[],
        ${retries.map((retry) => retry.priority)}::priority[],
        ${retries.map((retry) => retry.due)}::timestamptz[]
      ) as retry (run, job, task, instant, attempt, priority, due)
      join task on task.job_id = retry.job and task.name = retry.task and task.removed_at is null
     order by retry.run
    on conflict do nothing`);
}

/** One value of a stash; neither project nor job: of the global one. */
export interface StashKey {
  readonly project: string | null;
  readonly job: string | null;
  readonly instant: Date | null;
  readonly name: string;
}

/** The encrypted values of these keys, in their order; null: there is none. */
export async function findStash(db: Db, keys: readonly StashKey[]): Promise<(Buffer | null)[]> {
  const rows = await db.rows<{ data: Buffer | null }>(sql`
    select coalesce(job_stash.data, project_stash.data, global_stash.data) as data
      from ${keysOf(keys)}
      left join job_stash on job_stash.job_id = key.job and job_stash.instant = key.instant and job_stash.name = key.name
      left join project_stash on project_stash.project_id = key.project and project_stash.name = key.name
      left join global_stash on key.job is null and key.project is null and global_stash.name = key.name
     order by key.n`);
  return rows.map(({ data }) => data);
}

export type SealedValue = StashKey & { readonly data: Buffer };

/** Of values with the same key, the last one counts. */
export async function writeStash(db: Db, values: readonly SealedValue[]): Promise<void> {
  const named = sql`
    select distinct on (key.project, key.job, key.instant, key.name) key.*, value.data
      from ${keysOf(values)}
      join unnest(${values.map(({ data }) => data)}::bytea[]) with ordinality as value (data, n) using (n)
     order by key.project, key.job, key.instant, key.name, n desc`;
  await db.exec(sql`
    insert into global_stash (name, data)
    select name, data from (${named}) as named where project is null and job is null
    on conflict (name) do update set data = excluded.data`);
  await db.exec(sql`
    insert into project_stash (project_id, name, data)
    select project, name, data from (${named}) as named where project is not null
    on conflict (project_id, name) do update set data = excluded.data`);
  await db.exec(sql`
    insert into job_stash (job_id, instant, name, data)
    select job, instant, name, data from (${named}) as named where job is not null
    on conflict (job_id, instant, name) do update set data = excluded.data`);
}

function keysOf(keys: readonly StashKey[]): Sql {
  return sql`unnest(
        ${keys.map((key) => key.project)}::uuid[],
        ${keys.map((key) => key.job)}::uuid[],
        ${keys.map((key) => key.instant)}::timestamptz[],
        ${keys.map((key) => key.name)}::text[]
      ) with ordinality as key (project, job, instant, name, n)`;
}
