/**
 * What an overview reads. Each statement walks along an index and stops at a bound, so that neither the queue nor the
 * history makes it slower; the orders within are there to keep it on that index.
 */
import { type Db, sql } from '../../kernel/sql.ts';
import { triggerColumns, type TriggerRow } from '../../scheduler/queries.ts';
import { countedUpTo } from './endpoints.ts';
import type { State } from '../shapes.ts';
import { ofTask, taskPart } from '../explain/queries.ts';
import type { Part } from '../explain/findings.ts';
import { failingTasks } from '../tasks/failing-tasks.ts';

/** How many of each are shown. */
export const mostShown = 10;
/** The first of each lane are looked at, so that others' queues hide none; of a lane's no more than a claim passes by. */
const lanesSeen = 50;
const runsSeen = 100;

export type Counts = { running: number; ready: number; held: number; retry: number };

/** Of runs that are parked and at a gate the gate's count has told already. */
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

/** Ready runs that nobody has taken since before then, the oldest first. */
export function listLateRuns(db: Db, before: Date): Promise<LateRun[]> {
  const ready = sql`live.worker_id is null and not live.parked and live.gate is null`;
  return db.rows<LateRun>(sql`
    with recursive lanes as (
      (select live.lane, 1 as n from live where ${ready} order by live.lane limit 1)
      union all
      select (select live.lane from live where ${ready} and live.lane > lanes.lane order by live.lane limit 1), n + 1
        from lanes
       where lanes.lane is not null and n < ${lanesSeen}
    ),
    late as (
      select head.*
        from lanes
       cross join lateral (
         select live.id, live.task_id, live.instant, live.queued_at
           from live
          where ${ready} and live.lane = lanes.lane
          order by live.rank, live.id
          limit ${runsSeen}
       ) as head
       where head.queued_at < ${before}
       order by head.queued_at, head.id
       limit ${runsSeen}
    )
    select ${taskPart}, late.id as run, late.instant, late.queued_at as since
      from late
      join task on task.id = late.task_id
      ${ofTask}
     where not task.paused
     order by late.queued_at, late.id
     limit ${mostShown}`);
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
     limit ${mostShown}`);
}

export type NextTrigger = TriggerRow & Part & { readonly last_fired: Date | null };

/** Those of these triggers that may fire, and what they have fired for last by their schedule: marks may lag behind it. */
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

/** How long a statement takes that does nothing, in milliseconds. */
export async function measureLatency(db: Db): Promise<number> {
  const startedMs = performance.now();
  await db.one(sql`select 1 as one`);
  return Math.round((performance.now() - startedMs) * 100) / 100;
}
