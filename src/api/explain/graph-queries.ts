/**
 * Statements for explanations of tokens and triggers: the token, its parents and whether they have counted, what blocks the
 * parents, and the schedule, marks and firings of a trigger. Each statement walks indexes only, and is bounded.
 */
import { type Db, sql } from '../../kernel/sql.ts';
import { triggerColumns, type TriggerRow } from '../../scheduler/queries.ts';
import type { State } from '../shapes.ts';
import { maxCounted, maxListed, ofTask, taskPart } from './queries.ts';
import type { Part } from './findings.ts';
import { tokenState } from '../instants/token-state.ts';

export type ExplainedToken = Part & {
  readonly threshold: number;
  readonly paused: boolean;
  readonly removed: boolean;
  readonly instant: Date | null;
  readonly state: State;
  readonly count: number;
  readonly cleared_at: Date | null;
  readonly held: boolean;
  /** The unfinished run, else the newest run since the last clear. */
  readonly run: string | null;
};

/** Without an instant: at the newest instant of the task's tokens, else of its job's tokens, else at none. */
export function findToken(db: Db, id: string, instant: Date | undefined): Promise<ExplainedToken | undefined> {
  return db.maybeOne<ExplainedToken>(sql`
    select ${taskPart}, task.threshold, task.paused, task.removed_at is not null as removed, at.instant,
           ${tokenState} as state, coalesce(t.count, 0) as count, t.cleared_at,
           exists (select 1 from held where held.task_id = t.task_id and held.instant = t.instant) as held,
           coalesce(
             (select live.id from live
               where live.task_id = t.task_id and live.instant = t.instant
               order by live.worker_id is null, live.rank, live.id
               limit 1),
             (select run.id from run
               where run.task_id = t.task_id and run.instant = t.instant
                 and (t.cleared_at is null or run.finished_at > t.cleared_at)
               order by run.finished_at desc, run.id desc
               limit 1)) as run
      from task
      ${ofTask}
     cross join lateral (
       select coalesce(
         ${instant ?? null}::timestamptz,
         (select max(token.instant) from token where token.task_id = task.id),
         (select max(newest.instant)
            from task other
           cross join lateral (
             select token.instant
               from token
              where token.task_id = other.id
              order by token.instant desc
              limit 1
           ) as newest
           where other.job_id = task.job_id)) as instant
     ) as at
      left join token t on t.task_id = task.id and t.instant = at.instant
     where task.id = ${id}`);
}

export type ParentRow = Part & {
  readonly kind: 'success' | 'failure' | 'done';
  readonly instant: Date;
  readonly paused: boolean;
  readonly threshold: number;
  readonly count: number;
  /** Whether a token exists: a parent has counted for it, or a user has activated it. */
  readonly begun: boolean;
  readonly state: State;
  /** Whether a further attempt follows. Until then, a failed attempt does not count. */
  readonly retrying: boolean;
  readonly retry_at: Date | null;
  /** The newest finished run. */
  readonly run: string | null;
  readonly run_state: State | null;
  readonly finished_at: Date | null;
};

export function listParents(db: Db, task: string, instant: Date): Promise<ParentRow[]> {
  return db.rows<ParentRow>(sql`
    with edges as (
      select parent_id, kind, ${instant}::timestamptz - offset_ms * interval '1 millisecond' as instant
        from task_edge
       where child_id = ${task}
       limit ${maxCounted}
    )
    select ${taskPart}, edges.kind, edges.instant, task.paused, task.threshold, coalesce(t.count, 0) as count,
           t.task_id is not null as begun, ${tokenState} as state,
           later.at is not null or exists (
             select 1 from live
              where live.task_id = task.id and live.instant = edges.instant and live.attempt > 1) as retrying,
           later.at as retry_at, newest.id as run, newest.state as run_state, newest.finished_at
      from edges
      join task on task.id = edges.parent_id
      ${ofTask}
      left join token t on t.task_id = task.id and t.instant = edges.instant
      left join lateral (
        select min(due_at) as at from retry where retry.task_id = task.id and retry.instant = edges.instant
      ) as later on true
      left join lateral (
        select run.id, run.state::text, run.finished_at
          from run
         where run.task_id = task.id and run.instant = edges.instant
         order by run.finished_at desc, run.id desc
         limit 1
      ) as newest on true
     order by project.name, job.name, task.name, edges.kind, edges.instant`);
}

export type BlockedRow = Part & {
  readonly instant: Date;
  readonly state: State;
  /** Whether more than one edge leads to it. */
  readonly several: boolean;
};

const maxChainLength = 30;

/**
 * Lists the token, a parent that has not counted for it, a parent of that parent, and so on, up to one that is not waiting.
 * Among several parents it follows one that has ended, else one that waits.
 */
export function listBlocked(db: Db, task: string, instant: Date): Promise<BlockedRow[]> {
  return db.rows<BlockedRow>(sql`
    with recursive blocked as (
      select 1 as n, ${task}::uuid as task_id, ${instant}::timestamptz as instant, 'waiting' as state
      union all
      select blocked.n + 1, parent.task_id, parent.instant, parent.state
        from blocked
       cross join lateral (
         select e.parent_id as task_id, at.instant, s.state
           from (select * from task_edge where child_id = blocked.task_id limit ${maxCounted}) as e
          cross join lateral (select blocked.instant - e.offset_ms * interval '1 millisecond' as instant) as at
           left join token t on t.task_id = e.parent_id and t.instant = at.instant
          cross join lateral (select ${tokenState} as state) as s
          where case
                  when s.state = 'success' then e.kind = 'failure'
                  when s.state in ('failure', 'timeout', 'error') then e.kind = 'success'
                  else true
                end
          order by s.state in ('active', 'running', 'retry'), s.state = 'waiting', e.parent_id
          limit 1
       ) as parent
       where blocked.n < ${maxChainLength} and blocked.state = 'waiting'
    )
    select ${taskPart}, blocked.instant, blocked.state,
           (select count(*) from (select 1 from task_edge where child_id = task.id limit 2) as tasks)
             + (select count(*) from (select 1 from trigger_edge where task_id = task.id limit 2) as triggers) > 1 as several
      from blocked
      join task on task.id = blocked.task_id
      ${ofTask}
     order by blocked.n`);
}

export type ExplainedTrigger = Part &
  TriggerRow & {
    readonly paused: boolean;
    readonly removed: boolean;
    /** The current version of the job, and who applied it. */
    readonly version: number;
    readonly actor: string | null;
    readonly applied_at: Date | null;
  };

const triggerPart = sql`
           ${triggerColumns}, trigger.name, job.name as job_name, project.name as project_name, job.paused,
           trigger.removed_at is not null as removed, job.version`;

export function findExplainedTrigger(db: Db, id: string): Promise<ExplainedTrigger | undefined> {
  return db.maybeOne<ExplainedTrigger>(sql`
    select ${triggerPart}, made.actor, made.at as applied_at
      from trigger
      join job on job.id = trigger.job_id
      join project on project.id = job.project_id
      left join job_version made on made.job_id = job.id and made.version = job.version
     where trigger.id = ${id}`);
}

/** A trigger at an instant, which need not be on its schedule. */
export type TriggerAt = Omit<ExplainedTrigger, 'actor' | 'applied_at'> & {
  readonly instant: Date;
  readonly fired: boolean;
  /** Whether the instant lies in a range that is still being caught up. */
  readonly catching_up: boolean;
};

const whatBecame = sql`
           exists (select 1 from firing where firing.trigger_id = trigger.id and firing.instant = at.instant) as fired,
           exists (
             select 1 from catchup
              where catchup.trigger_id = trigger.id and catchup.from_at <= at.instant and catchup.to_at > at.instant
           ) as catching_up`;

export function listParentTriggers(db: Db, task: string, instant: Date): Promise<TriggerAt[]> {
  return db.rows<TriggerAt>(sql`
    with edges as (
      select trigger_id, ${instant}::timestamptz - offset_ms * interval '1 millisecond' as instant
        from trigger_edge
       where task_id = ${task}
       limit ${maxCounted}
    )
    select ${triggerPart}, at.instant, ${whatBecame}
      from edges at
      join trigger on trigger.id = at.trigger_id
      join job on job.id = trigger.job_id
      join project on project.id = job.project_id
     order by project.name, job.name, trigger.name, at.instant`);
}

/** The current triggers of a job. */
export function listJobTriggers(db: Db, job: string): Promise<ExplainedTrigger[]> {
  return db.rows<ExplainedTrigger>(sql`
    select ${triggerPart}, null as actor, null as applied_at
      from trigger
      join job on job.id = trigger.job_id
      join project on project.id = job.project_id
     where trigger.job_id = ${job} and trigger.removed_at is null
     order by trigger.name
     limit ${maxListed}`);
}

export type TriggerFacts = {
  readonly tasks: number;
  readonly last_fired: Date | null;
  readonly last_cause: string | null;
};

/** The number of tasks that depend on the trigger, and its last firing. */
export function findTriggerFacts(db: Db, id: string): Promise<TriggerFacts> {
  return db.one<TriggerFacts>(sql`
    select (select count(*)::integer
              from (select 1 from trigger_edge where trigger_id = ${id} limit ${maxCounted}) as edges) as tasks,
           newest.instant as last_fired, newest.cause as last_cause
      from (select 1) as always
      left join lateral (
        select instant, cause
          from firing
         where trigger_id = ${id}
         order by instant desc, cause desc
         limit 1
      ) as newest on true`);
}

export type CatchupLeft = {
  readonly from_at: Date;
  readonly to_at: Date;
  readonly policy: string;
  readonly next_piece: number;
  readonly pieces: number;
};

export function listCatchups(db: Db, trigger: string): Promise<CatchupLeft[]> {
  return db.rows<CatchupLeft>(sql`
    select from_at, to_at, policy, next_piece, pieces
      from catchup
     where trigger_id = ${trigger}
     order by from_at
     limit ${maxListed}`);
}

/** Why an instant of a trigger fired, and whether it is being caught up. */
export function findInstant(
  db: Db,
  trigger: string,
  instant: Date,
): Promise<{ causes: string[]; catching_up: boolean }> {
  return db.one(sql`
    select array(
             select cause from firing where trigger_id = ${trigger} and instant = ${instant}
              order by cause = 'schedule' desc, cause
              limit ${maxListed}) as causes,
           exists (
             select 1 from catchup
              where trigger_id = ${trigger} and from_at <= ${instant} and to_at > ${instant}) as catching_up`);
}
