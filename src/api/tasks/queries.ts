/** Statements about single tasks and triggers. */
import { type Db, sql } from '../../kernel/sql.ts';
import type { State } from '../shapes.ts';
import { type TriggerRow, triggerColumns } from '../jobs/queries.ts';
import type { InstantPage } from '../instants/latest-instants.ts';
import { tokenState } from '../instants/token-state.ts';

export type TaskRow = {
  readonly task_id: string;
  readonly task_name: string;
  readonly job_id: string;
  readonly job_name: string;
  readonly project_id: string;
  readonly project_name: string;
  readonly threshold: number;
  readonly paused: boolean;
  /** The version of the document that the task was made from. */
  readonly version: number;
};

export function findTask(db: Db, id: string): Promise<TaskRow | undefined> {
  return db.maybeOne<TaskRow>(sql`
    select task.id as task_id, task.name as task_name, job.id as job_id, job.name as job_name,
           project.id as project_id, project.name as project_name, task.threshold, job.paused,
           task.version
      from task
      join job on job.id = task.job_id
      join project on project.id = job.project_id
     where task.id = ${id} and task.removed_at is null and job.deleted_at is null`);
}

/** Locks the task's job against changes until the commit, so that it is not deleted while runs are created. */
export async function holdTask(db: Db, id: string): Promise<boolean> {
  const row = await db.maybeOne(sql`
    select 1
      from task
      join job on job.id = task.job_id
     where task.id = ${id} and task.removed_at is null and job.deleted_at is null
       for share of job`);
  return row !== undefined;
}

/** Whether the task exists or existed. */
export async function taskExisted(db: Db, id: string): Promise<boolean> {
  return (await db.maybeOne(sql`select 1 from task where id = ${id}`)) !== undefined;
}

export interface TokenRange {
  readonly task: string;
  /** Exclusive. */
  readonly after: Date | undefined;
  /** Exclusive. */
  readonly before: Date | undefined;
}

/** The newest instant in a range. */
export async function lastInstant(db: Db, range: TokenRange): Promise<Date | undefined> {
  const row = await db.one<{ instant: Date | null }>(sql`
    select max(instant) as instant
      from token
     where task_id = ${range.task}
       and instant > coalesce(${range.after}::timestamptz, '-infinity')
       and instant < coalesce(${range.before}::timestamptz, 'infinity')`);
  return row.instant ?? undefined;
}

export type JudgedToken = { readonly instant: Date; readonly state: State };

export interface TokenBatch {
  readonly task: string;
  /** Exclusive. */
  readonly after: Date | undefined;
  /** Inclusive. */
  readonly upTo: Date;
  /** Only at these instants. */
  readonly instants?: readonly Date[] | undefined;
  readonly limit: number;
}

/** Tokens of a task in order, a batch at a time. Walks the primary key. */
export function nextTokens(db: Db, batch: TokenBatch): Promise<JudgedToken[]> {
  const among = batch.instants ? sql`t.instant = any (${batch.instants}::timestamptz[])` : sql`true`;
  return db.rows<JudgedToken>(sql`
    select t.instant, ${tokenState} as state
      from token t
     where t.task_id = ${batch.task}
       and t.instant > coalesce(${batch.after}::timestamptz, '-infinity')
       and t.instant <= ${batch.upTo} and ${among}
     order by t.instant
     limit ${batch.limit}`);
}

/** The current states of these tokens. */
export function judgeTokens(db: Db, task: string, instants: readonly Date[]): Promise<JudgedToken[]> {
  return db.rows<JudgedToken>(sql`
    select t.instant, ${tokenState} as state
      from token t
     where t.task_id = ${task} and t.instant = any (${instants}::timestamptz[])
     order by t.instant`);
}

export type NamedTrigger = TriggerRow & {
  readonly job_id: string;
  readonly job_name: string;
  readonly project_id: string;
  readonly project_name: string;
};

export function findTrigger(db: Db, id: string): Promise<NamedTrigger | undefined> {
  return db.maybeOne<NamedTrigger>(sql`
    select ${triggerColumns}, job.id as job_id, job.name as job_name, project.id as project_id,
           project.name as project_name
      from trigger
      join job on job.id = trigger.job_id
      join project on project.id = job.project_id
     where trigger.id = ${id} and trigger.removed_at is null and job.deleted_at is null`);
}

export type FiredInstant = {
  readonly trigger_datetime: Date;
  readonly success: number;
  readonly running: number;
  readonly failure: number;
  readonly waiting: number;
};

/** The latest instants that a trigger fired, each with the states of all tokens of its job at that instant. */
export function listFired(db: Db, trigger: { id: string; job: string }, page: InstantPage): Promise<FiredInstant[]> {
  return db.rows<FiredInstant>(sql`
    with fired as (
      select distinct instant
        from firing
       where trigger_id = ${trigger.id} and instant < coalesce(${page.before}::timestamptz, 'infinity')
       order by instant desc
       limit ${page.limit}
    ),
    judged as (
      select t.instant, ${tokenState} as state
        from fired
       cross join task
        join token t on t.task_id = task.id and t.instant = fired.instant
       where task.job_id = ${trigger.job} and task.removed_at is null
    )
    select fired.instant as trigger_datetime,
           count(*) filter (where judged.state = 'success')::integer as success,
           count(*) filter (where judged.state in ('active', 'running'))::integer as running,
           count(*) filter (where judged.state in ('failure', 'timeout', 'error'))::integer as failure,
           count(*) filter (where judged.state in ('waiting', 'retry'))::integer as waiting
      from fired
      left join judged on judged.instant = fired.instant
     group by fired.instant
     order by fired.instant desc`);
}
