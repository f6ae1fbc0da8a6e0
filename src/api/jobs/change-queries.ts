/** Statements that pause jobs, and that run them now. */
import { type Db, sql } from '../../kernel/sql.ts';

export type LockedJob = { readonly id: string; readonly name: string; readonly paused: boolean };

/** Locks the job for a change of itself. Concurrent changes run one after another. */
export function lockJob(db: Db, id: string): Promise<LockedJob | undefined> {
  return db.maybeOne<LockedJob>(sql`
    select id, name, paused
      from job
     where id = ${id} and deleted_at is null
       for update`);
}

/** Locks the job against changes and deletion until the commit. */
export function holdJob(db: Db, id: string): Promise<LockedJob | undefined> {
  return db.maybeOne<LockedJob>(sql`
    select id, name, paused
      from job
     where id = ${id} and deleted_at is null
       for share`);
}

export async function setPaused(db: Db, job: string, paused: boolean, at: Date): Promise<void> {
  await db.exec(sql`
    update job
       set paused = ${paused}, updated_at = ${at}
     where id = ${job}`);
}

export async function setTasksPaused(db: Db, job: string, paused: boolean): Promise<void> {
  await db.exec(sql`
    update task
       set paused = ${paused}
     where job_id = ${job} and removed_at is null and paused <> ${paused}`);
}

/** Queued runs of a paused job wait, and return their permits. */
export async function parkRuns(db: Db, job: string, at: Date): Promise<void> {
  await db.exec(sql`
    select park_runs(array(select id from task where job_id = ${job} and removed_at is null), ${at}::timestamptz)`);
}

/** Returns the number of runs. Locks them by id. */
export function unparkRuns(db: Db, job: string): Promise<number> {
  return db.exec(sql`
    with queued as (
      select live.id
        from live
       where live.task_id in (select id from task where job_id = ${job} and removed_at is null)
         and live.worker_id is null and live.parked
       order by live.id
         for update
    )
    update live
       set parked = false
      from queued
     where live.id = queued.id`);
}

export type EntryRow = {
  readonly id: string;
  /** Waits for another task of the job, at any offset. */
  readonly waits: boolean;
  /** Waits for another task of the job at the same instant. */
  readonly waits_now: boolean;
};

export function listEntries(db: Db, job: string): Promise<EntryRow[]> {
  return db.rows<EntryRow>(sql`
    select task.id, count(parent.id) > 0 as waits,
           count(parent.id) filter (where task_edge.offset_ms = 0) > 0 as waits_now
      from task
      left join task_edge on task_edge.child_id = task.id and task_edge.parent_id <> task.id
      left join task parent on parent.id = task_edge.parent_id and parent.job_id = task.job_id
     where task.job_id = ${job} and task.removed_at is null
     group by task.id
     order by task.id`);
}

/** Returns false if the instant already has parameters. */
export async function insertParams(db: Db, job: string, instant: Date, params: string): Promise<boolean> {
  const inserted = await db.exec(sql`
    insert into instant_params (job_id, instant, params)
    values (${job}, ${instant}, ${params})
    on conflict do nothing`);
  return inserted > 0;
}

export async function hasParams(db: Db, job: string, instant: Date, params: string): Promise<boolean> {
  const row = await db.maybeOne<{ same: boolean }>(sql`
    select params::jsonb = ${params}::jsonb as same
      from instant_params
     where job_id = ${job} and instant = ${instant}`);
  return row?.same === true;
}

export interface Activation {
  readonly tasks: readonly string[];
  readonly instants: readonly Date[];
  readonly priority: string;
  readonly actor: string;
  readonly at: Date;
}

/** Locks the existing tokens. A statement after it sees what concurrent transactions did to them. */
export async function lockTokens(db: Db, task: string, instants: readonly Date[]): Promise<void> {
  await db.exec(sql`
    select 1
      from token
     where task_id = ${task} and instant = any (${instants}::timestamptz[])
     order by instant
       for update`);
}

/**
 * Creates runs and returns their ids. Deletes waiting retries, which would only repeat the run. Appends events, so nothing may
 * be locked after it.
 */
export async function activateTokens(db: Db, a: Activation): Promise<string[]> {
  await db.exec(sql`
    delete from retry
     using unnest(${a.tasks}::uuid[], ${a.instants}::timestamptz[]) as t (task_id, instant)
     where retry.task_id = t.task_id and retry.instant = t.instant`);
  const row = await db.one<{ runs: string[] }>(sql`
    select activate_tokens(
      ${a.tasks}::uuid[], ${a.instants}::timestamptz[], ${a.priority}::priority, ${a.actor}, ${a.at}) as runs`);
  return row.runs;
}
