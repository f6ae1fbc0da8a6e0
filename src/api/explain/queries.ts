/**
 * Statements for explanations of runs: the run, the runs before it, the holders of a limit, its causes, and what followed.
 * Each statement walks indexes and is bounded, so its cost does not grow with the queue or the history.
 */
import { type Db, sql } from '../../kernel/sql.ts';
import type { State } from '../shapes.ts';
import type { Part } from './findings.ts';
import { tokenState } from '../instants/token-state.ts';

/** Maximum items of a list in a response, and maximum rows that are counted. */
export const maxListed = 20;
export const maxCounted = 1_000;
const maxChainLength = 30;

/** The columns of `Part`, from rows `task`, `job` and `project`. */
export const taskPart = sql`
           task.id, task.name, job.id as job_id, job.name as job_name, project.name as project_name`;
export const ofTask = sql`
      join job on job.id = task.job_id
      join project on project.id = job.project_id`;

export type ExplainedRun = {
  readonly id: string;
  readonly state: State;
  readonly instant: Date | null;
  readonly attempt: number;
  readonly lease: number;
  readonly worker_id: string | null;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly reason: string | null;
  readonly exit_code: number | null;
  /** null for a finished run, like `rank` and `gate`. */
  readonly lane: string | null;
  readonly rank: Date | null;
  readonly gate: string | null;
  readonly parked: boolean;
  readonly losses: number;
  readonly cancel: boolean;
  readonly lease_until: Date | null;
  readonly beat_at: Date | null;
  /** null: the run belongs to no task. */
  readonly task: TaskOfRun | null;
};

export type TaskOfRun = Part & {
  readonly threshold: number;
  readonly max_attempts: number;
  readonly paused: boolean;
  readonly removed: boolean;
};

export function findExplainedRun(db: Db, id: string): Promise<ExplainedRun | undefined> {
  return db.maybeOne<ExplainedRun>(sql`
    with found as (
      select id, case when worker_id is null then 'active' else 'running' end as state, task_id, instant, attempt,
             lease, worker_id, claimed_at as started_at, null::timestamptz as finished_at,
             null::text as reason, null::integer as exit_code, lane, rank, gate, parked, losses, cancel
        from live
       where id = ${id}
      union all
      select id, state::text, task_id, instant, attempt,
             lease, worker_id, started_at, finished_at,
             reason, exit_code, null, null, null, false, 0, false
        from run
       where id = ${id}
    )
    select found.*, lease.until as lease_until, lease.beat_at,
           (select to_jsonb(part)
              from (
                select ${taskPart}, task.threshold, task.max_attempts, task.paused,
                       task.removed_at is not null as removed
                  from task
                  ${ofTask}
                 where task.id = found.task_id
              ) as part) as task
      from found
      left join lease on lease.worker_id = found.worker_id and found.finished_at is null`);
}

/**
 * Counts the runs of the lane that are handed out before this one, up to `maxCounted`. The `order by` makes the planner use
 * live_ready; without it, the planner would scan the table until it has found enough rows.
 */
export async function countBefore(db: Db, run: { id: string; lane: string; rank: Date }): Promise<number> {
  const row = await db.one<{ n: number }>(sql`
    select count(*)::integer as n
      from (
        select 1
          from live
         where lane = ${run.lane} and worker_id is null and not parked and gate is null
           and (rank, id) < (${run.rank}::timestamptz, ${run.id}::uuid)
         order by rank, id
         limit ${maxCounted}
      ) as before`);
  return row.n;
}

export type GateRow = {
  readonly id: string;
  readonly kind: 'job' | 'task' | 'pool';
  readonly name: string | null;
  readonly capacity: number | null;
  readonly used: number;
  /** The number of runs that wait at the gate before this one. */
  readonly before: number;
};

export function findGate(db: Db, run: { id: string; gate: string; rank: Date }): Promise<GateRow | undefined> {
  return db.maybeOne<GateRow>(sql`
    select gate.id, gate.kind, gate.name, gate.capacity, gate.used,
           (select count(*)::integer
              from (
                select 1
                  from live
                 where live.gate = gate.id and (live.rank, live.id) < (${run.rank}::timestamptz, ${run.id}::uuid)
                 order by live.rank, live.id
                 limit ${maxCounted}
              ) as waiting) as before
      from gate
     where gate.id = ${run.gate}`);
}

export type HolderRow = {
  readonly run: string;
  readonly instant: Date | null;
  readonly running: boolean;
  /** null: the run belongs to a node. */
  readonly task: Part | null;
  readonly node: { readonly name: string; readonly execution: string } | null;
};

/**
 * Some of the runs that hold places of a task's or pool's gate: running runs (few, because the places of workers limit them),
 * and runs among the first of the lane.
 */
export function listHolders(db: Db, gate: string, lane: string): Promise<HolderRow[]> {
  return db.rows<HolderRow>(sql`
    with running as (
      select id, task_id, instant, true as running
        from live
       where worker_id is not null and permits @> array[${gate}::uuid]
       limit ${maxListed}
    ),
    first_ready as (
      select id, task_id, instant, permits
        from live
       where lane = ${lane} and worker_id is null and not parked and gate is null
       order by rank, id
       limit ${maxCounted}
    ),
    holders as (
      select * from running
      union all
      select id, task_id, instant, false from first_ready where permits @> array[${gate}::uuid]
       limit ${maxListed}
    )
    select holders.id as run, holders.instant, holders.running,
           (select to_jsonb(part)
              from (select ${taskPart} from task ${ofTask} where task.id = holders.task_id) as part) as task,
           (select jsonb_build_object('name', n.work ->> 'name', 'execution', n.execution_id)
              from node_run n
             where n.run_id = holders.id) as node
      from holders
     order by holders.running desc, holders.id`);
}

export function listActiveInstants(db: Db, job: string): Promise<{ instant: Date; since: Date }[]> {
  return db.rows(sql`
    select instant, since
      from active_instant
     where job_id = ${job}
     order by instant
     limit ${maxListed}`);
}

export type CauseRow = Part & {
  readonly run: string;
  readonly instant: Date;
  readonly attempt: number;
  readonly priority: string;
  readonly state: State;
  readonly cause: string | null;
  readonly queued_at: Date;
  readonly threshold: number;
  readonly trigger: Part | null;
};

/** The run, the run that caused it, and so on; each with its trigger, if a trigger caused it. */
export function listCauses(db: Db, run: string): Promise<CauseRow[]> {
  return db.rows<CauseRow>(sql`
    with recursive link as (
      select 1 as n, own.*
        from (
          select id, task_id, instant, attempt, priority, cause, queued_at,
                 case when worker_id is null then 'active' else 'running' end as state
            from live
           where id = ${run}
          union all
          select id, task_id, instant, attempt, priority, cause, queued_at, state::text from run where id = ${run}
        ) as own
      union all
      select link.n + 1, earlier.*
        from link
       cross join lateral (
         select id, task_id, instant, attempt, priority, cause, queued_at, 'running' from live where id = link.cause
         union all
         select id, task_id, instant, attempt, priority, cause, queued_at, state::text from run where id = link.cause
       ) as earlier
       where link.n < ${maxChainLength}
    )
    select ${taskPart}, link.id as run, link.instant, link.attempt, link.priority, link.state, link.cause,
           link.queued_at, task.threshold,
           (select to_jsonb(part)
              from (
                select trigger.id, trigger.name, owner.id as job_id, owner.name as job_name, place.name as project_name
                  from trigger
                  join job owner on owner.id = trigger.job_id
                  join project place on place.id = owner.project_id
                 where trigger.id = link.cause
              ) as part) as trigger
      from link
      join task on task.id = link.task_id
      ${ofTask}
     order by link.n`);
}

/** Whether the chain has reached its maximum length, so that it may be incomplete. */
export function isCut(links: readonly unknown[]): boolean {
  return links.length >= maxChainLength;
}

/** The firings of the trigger that caused a run. Edges may have been edited since, so the run's own instant is tried too. */
export function listFirings(
  db: Db,
  run: { trigger: string; task: string; instant: Date },
): Promise<{ instant: Date; cause: string }[]> {
  return db.rows(sql`
    select firing.instant, firing.cause
      from firing
     where firing.trigger_id = ${run.trigger}
       and firing.instant = any (array(
         select ${run.instant}::timestamptz - e.offset_ms * interval '1 millisecond'
           from trigger_edge e
          where e.trigger_id = ${run.trigger} and e.task_id = ${run.task}
          union
         select ${run.instant}::timestamptz))
     order by firing.cause = 'schedule' desc, firing.cause
     limit ${maxListed}`);
}

export type BackfillOf = {
  readonly id: string;
  readonly name: string | null;
  readonly actor: string;
  readonly created_at: Date;
};

/** The newest of these backfills that can have caused the run: it is older than the run and has the same priority. */
export function findBackfillOf(
  db: Db,
  ids: readonly string[],
  run: { queued_at: Date; priority: string },
): Promise<BackfillOf | undefined> {
  return db.maybeOne<BackfillOf>(sql`
    select id, name, actor, created_at
      from backfill
     where id = any (${ids}::uuid[]) and created_at <= ${run.queued_at} and priority = ${run.priority}::priority
     order by id desc
     limit 1`);
}

export type ActRow = { readonly type: string; readonly actor: string | null; readonly at: Date };

/** Who created a run that no trigger and no run caused. If the whole job was run, the event `job.run` follows in the log. */
export function findMaker(db: Db, run: string, job: string): Promise<ActRow | undefined> {
  return db.maybeOne<ActRow>(sql`
    with made as (
      select seq, type, actor, at
        from event
       where subject = ${run} and type = 'run.created'
       order by seq
       limit 1
    )
    select coalesce(whole.type, made.type) as type, made.actor, made.at
      from made
      left join lateral (
        select type, at
          from event
         where subject = ${job} and seq > made.seq
         order by seq
         limit 1
      ) as whole on whole.type = 'job.run' and whole.at = made.at`);
}

/** The newest event of a type about a job, among its newest `maxCounted` events. */
export function findJobEvent(
  db: Db,
  about: { job: string; type: string; at?: Date | undefined },
): Promise<ActRow | undefined> {
  return db.maybeOne<ActRow>(sql`
    select type, actor, at
      from (
        select seq, type, actor, at
          from event
         where subject = ${about.job}
         order by seq desc
         limit ${maxCounted}
      ) as newest
     where type = ${about.type} and at = coalesce(${about.at}::timestamptz, at)
     order by seq desc
     limit 1`);
}

/** The scheduled retry, or the run that it has become. */
export function findNextAttempt(
  db: Db,
  run: { id: string; task: string; instant: Date },
): Promise<{ id: string | null; attempt: number; at: Date } | undefined> {
  return db.maybeOne(sql`
    select null::uuid as id, attempt, due_at as at
      from retry
     where run_id = ${run.id}
    union all
    select id, attempt, queued_at
      from live
     where task_id = ${run.task} and instant = ${run.instant} and cause = ${run.id}
    union all
    select id, attempt, queued_at
      from run
     where task_id = ${run.task} and instant = ${run.instant} and cause = ${run.id}
     limit 1`);
}

export type ChildRow = Part & {
  readonly kind: 'success' | 'failure' | 'done';
  readonly instant: Date;
  readonly count: number;
  readonly threshold: number;
  readonly state: State;
};

/** Tasks for which a run that ended in this state counts, by the current edges. */
export function listChildren(db: Db, run: { task: string; instant: Date; state: string }): Promise<ChildRow[]> {
  return db.rows<ChildRow>(sql`
    with counting as (
      select child_id, kind, offset_ms
        from task_edge
       where parent_id = ${run.task} and (kind = 'done' or (kind = 'success') = (${run.state}::text = 'success'))
       limit ${maxListed + 1}
    )
    select ${taskPart}, e.kind, at.instant, coalesce(t.count, 0) as count, task.threshold, ${tokenState} as state
      from counting e
     cross join lateral (select ${run.instant}::timestamptz + e.offset_ms * interval '1 millisecond' as instant) as at
      join task on task.id = e.child_id
      ${ofTask}
      left join token t on t.task_id = e.child_id and t.instant = at.instant
     order by project.name, job.name, task.name, at.instant`);
}
