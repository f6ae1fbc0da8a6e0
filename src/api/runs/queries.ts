/**
 * Statements about runs, unfinished (`live`) and finished (`run`). A run moves from one table to the other in one commit, so a
 * single statement sees it exactly once.
 *
 * Ids are in the order in which runs were queued, so the newest runs are found by walking the primary keys backwards.
 */
import { type Db, type Sql, sql } from '../../kernel/sql.ts';
import type { State } from '../shapes.ts';

export const liveColumns = sql`
         live.id, live.task_id, live.instant, live.version, live.attempt, live.priority, live.lease, live.worker_id,
         live.cause, live.queued_at, live.claimed_at as started_at, null::timestamptz as finished_at,
         case when live.worker_id is null then 'active' else 'running' end as state, null::text as reason,
         null::integer as exit_code`;
export const runColumns = sql`
         run.id, run.task_id, run.instant, run.version, run.attempt, run.priority, run.lease, run.worker_id,
         run.cause, run.queued_at, run.started_at, run.finished_at, run.state::text as state, run.reason,
         run.exit_code`;

type Priority = 'backfill' | 'low' | 'normal' | 'high';

/** A run in Waterwheel's endpoints. */
export type RunRow = {
  readonly task_id: string;
  readonly task_run_id: string;
  readonly name: string;
  readonly trigger_datetime: Date;
  readonly attempt: number;
  readonly queued_datetime: Date;
  readonly started_datetime: Date | null;
  readonly finish_datetime: Date | null;
  readonly state: State;
  readonly priority: Priority;
  readonly worker_id: string | null;
};

const timeColumns = sql`
           r.id as task_run_id, r.instant as trigger_datetime, r.attempt, r.queued_at as queued_datetime,
           r.started_at as started_datetime, r.finished_at as finish_datetime, r.state, r.priority, r.worker_id`;
const rowColumns = sql`r.task_id, task.name, ${timeColumns}`;

/** Includes removed tasks of the job. */
export function listRunsOfInstant(db: Db, job: string, instant: Date, limit: number): Promise<RunRow[]> {
  return db.rows<RunRow>(sql`
    select ${rowColumns}
      from task
     cross join lateral (
       select ${liveColumns} from live where live.task_id = task.id and live.instant = ${instant}
       union all
       select ${runColumns} from run where run.task_id = task.id and run.instant = ${instant}
     ) as r
     where task.job_id = ${job}
     order by task.name, r.queued_at, r.id
     limit ${limit}`);
}

/** In the order in which they were queued; at most the latest thousand. */
export function listRunsOfToken(db: Db, task: string, instant: Date): Promise<RunRow[]> {
  return db.rows<RunRow>(sql`
    with latest as (
      select ${liveColumns} from live where live.task_id = ${task} and live.instant = ${instant}
      union all
      select ${runColumns} from run where run.task_id = ${task} and run.instant = ${instant}
       order by queued_at desc, id desc
       limit 1000
    )
    select ${rowColumns}
      from latest r
      join task on task.id = r.task_id
     order by r.queued_at, r.id`);
}

/** Maximum newest runs that are scanned for those of one worker, because `run` has no index on the worker. */
const workerWindow = 100_000;

export interface WorkerRuns {
  readonly worker: string;
  readonly states: readonly State[] | undefined;
  /** Start of the scan: the worker has no run that was queued later. */
  readonly upTo: Date;
}

export type WorkerTask = Omit<RunRow, 'name'> & {
  readonly job_id: string;
  readonly job_name: string;
  readonly project_id: string;
  readonly project_name: string;
  readonly task_name: string;
};

/** The last 100 runs of the worker, among the last `workerWindow` runs of the tenant up to its last heartbeat. */
export function listRunsOfWorker(db: Db, { worker, states, upTo }: WorkerRuns): Promise<WorkerTask[]> {
  const wanted = states ? sql`r.state = any (${states}::text[])` : sql`true`;
  return db.rows<WorkerTask>(sql`
    with held as (
      select ${liveColumns}
        from live
       where live.worker_id = ${worker}
    ),
    finished as (
      select *
        from (
          select ${runColumns}
            from run
           where run.id < ${firstIdAfter(upTo)}
           order by run.id desc
           limit ${workerWindow}
        ) as newest
       where newest.worker_id = ${worker} and ${states ? sql`newest.state = any (${states}::text[])` : sql`true`}
       limit 100
    )
    select job.id as job_id, job.name as job_name, project.id as project_id, project.name as project_name,
           r.task_id, task.name as task_name, ${timeColumns}
      from (select * from held union all select * from finished) as r
      join task on task.id = r.task_id
      join job on job.id = task.job_id
      join project on project.id = job.project_id
     where ${wanted}
     order by r.id desc
     limit 100`);
}

/** The smallest UUID of version 7 that can be created a second later. */
function firstIdAfter(at: Date): string {
  const hex = (at.getTime() + 1_000).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}

/** A run in Millrace's own endpoints. */
export type FullRun = {
  readonly id: string;
  readonly state: State;
  readonly task_id: string | null;
  readonly task_name: string | null;
  readonly job_id: string | null;
  readonly job_name: string | null;
  readonly project_name: string | null;
  readonly instant: Date | null;
  readonly version: number;
  readonly attempt: number;
  readonly priority: Priority;
  readonly lease: number;
  readonly worker_id: string | null;
  readonly cause: string | null;
  readonly queued_at: Date;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly reason: string | null;
  readonly exit_code: number | null;
};

export const withNames = (runs: Sql): Sql => sql`
    select r.*, task.name as task_name, job.id as job_id, job.name as job_name, project.name as project_name
      from (${runs}) as r
      left join task on task.id = r.task_id
      left join job on job.id = task.job_id
      left join project on project.id = job.project_id`;

/** Also finds runs of removed tasks and deleted jobs. */
export function findRun(db: Db, id: string): Promise<FullRun | undefined> {
  return db.maybeOne<FullRun>(
    withNames(sql`
        select ${liveColumns} from live where live.id = ${id}
        union all
        select ${runColumns} from run where run.id = ${id}`),
  );
}
