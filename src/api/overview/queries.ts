/**
 * Statements of the start page. Each walks an index and is bounded, so its cost does not depend on the queue or the history.
 * The inner `order by` clauses make the planner use that index.
 */
import { type Db, sql } from '../../kernel/sql.ts';
import { triggerColumns, type TriggerRow } from '../../scheduler/queries.ts';
import { countedUpTo } from './endpoints.ts';
import type { State } from '../shapes.ts';
import { ofTask, taskPart } from '../explain/queries.ts';
import type { Part } from '../explain/findings.ts';
import { failingTasks } from '../tasks/failing-tasks.ts';

/** Maximum items of each list. */
export const maxShown = 10;
/** At most this many lanes, and runs of each lane, are checked. A long lane does not hide late runs of others. */
const maxLanes = 50;
const maxRunsPerLane = 100;

export type Counts = { running: number; ready: number; held: number; retry: number };

/** A run that is parked at a gate is counted once in `held`. */
export function countLive(db: Db): Promise<Counts> {
  return db.one<Counts>(sql`
    with running as (
      select 1 from live where worker_id is not null order by worker_id limit ${countedUpTo}
    ),
    ready as (
      select 1 from live
       where worker_id is null and not parked and gate is null
       order by lane, rank, id
       limit ${countedUpTo}
    ),
    gated as (
      select 1 from live where gate is not null order by gate, rank, id limit ${countedUpTo}
    ),
    parked as (
      select gate from live where parked order by task_id limit ${countedUpTo}
    ),
    retried as (
      select 1 from retry order by due_at limit ${countedUpTo}
    )
    select (select count(*)::integer from running) as running,
           (select count(*)::integer from ready) as ready,
           (select least(greatest(count(*), count(*) filter (where gate is null) + (select count(*) from gated)),
                         ${countedUpTo})::integer
              from parked) as held,
           (select count(*)::integer from retried) as retry`);
}

export type LateRun = Part & { readonly run: string; readonly instant: Date | null; readonly since: Date };

/** Ready runs that were queued before this time, the oldest first. */
export function listLateRuns(db: Db, before: Date): Promise<LateRun[]> {
  const ready = sql`live.worker_id is null and not live.parked and live.gate is null`;
  return db.rows<LateRun>(sql`
    with recursive lanes as (
      (select live.lane, 1 as n from live where ${ready} order by live.lane limit 1)
      union all
      select (select live.lane from live where ${ready} and live.lane > lanes.lane order by live.lane limit 1), n + 1
        from lanes
       where lanes.lane is not null and n < ${maxLanes}
    ),
    late as (
      select head.*
        from lanes
       cross join lateral (
         select live.id, live.task_id, live.instant, live.queued_at
           from live
          where ${ready} and live.lane = lanes.lane
          order by live.rank, live.id
          limit ${maxRunsPerLane}
       ) as head
       where head.queued_at < ${before}
       order by head.queued_at, head.id
       limit ${maxRunsPerLane}
    )
    select ${taskPart}, late.id as run, late.instant, late.queued_at as since
      from late
      join task on task.id = late.task_id
      ${ofTask}
     where not task.paused
     order by late.queued_at, late.id
     limit ${maxShown}`);
}

export type FailingTask = Part & {
  readonly run: string;
  readonly state: State;
  readonly instant: Date | null;
  readonly reason: string | null;
  readonly finished_at: Date;
};

/** The latest first. */
export function listFailing(db: Db): Promise<FailingTask[]> {
  return db.rows<FailingTask>(sql`
    select ${taskPart}, failing.run, failing.state, failing.instant, failing.reason, failing.finished_at
      from (${failingTasks}) as failing
      join task on task.id = failing.task_id
      ${ofTask}
     where job.deleted_at is null
     order by failing.finished_at desc, failing.run desc
     limit ${maxShown}`);
}

export type NextTrigger = TriggerRow & Part & { readonly last_fired: Date | null };

/** Those of these triggers that may fire, with their last scheduled firing, because marks may lag behind. */
export function listTriggers(db: Db, ids: readonly string[]): Promise<NextTrigger[]> {
  return db.rows<NextTrigger>(sql`
    select ${triggerColumns}, trigger.name, job.name as job_name, project.name as project_name,
           (select case when newest.cause = 'schedule' then newest.instant end
              from (
                select firing.instant, firing.cause
                  from firing
                 where firing.trigger_id = trigger.id
                 order by firing.instant desc, firing.cause desc
                 limit 1
              ) as newest) as last_fired
      from trigger
      join job on job.id = trigger.job_id
      join project on project.id = job.project_id
     where trigger.id = any (${ids}::uuid[])
       and trigger.removed_at is null and job.deleted_at is null and not job.paused`);
}

export async function databaseSize(db: Db): Promise<number> {
  return (await db.one<{ size: number }>(sql`select pg_database_size(current_database())::float8 as size`)).size;
}

/** The time of an empty statement, in milliseconds. */
export async function measureLatency(db: Db): Promise<number> {
  const startedMs = performance.now();
  await db.one(sql`select 1 as one`);
  return Math.round((performance.now() - startedMs) * 100) / 100;
}
