/** The scheduler's statements. Each stage of the pipeline is one call of a function of the tenant's schema. */
import { type Db, sql } from '../kernel/sql.ts';

export type TriggerRow = {
  id: string;
  job_id: string;
  start_at: Date;
  end_at: Date | null;
  period_ms: number | null;
  cron: string | null;
  timezone: string | null;
  offset_ms: number;
  catchup: 'none' | 'earliest' | 'latest' | 'random' | 'last';
  catchup_window_ms: number | null;
  earliest: Date | null;
  latest: Date | null;
  /** When its job was last applied or unpaused. */
  since: Date;
};

/** Columns of `trigger` joined with its `job`. */
export const triggerColumns = sql`
  trigger.id, trigger.job_id, trigger.start_at, trigger.end_at, trigger.period_ms, trigger.cron, trigger.timezone,
  trigger.offset_ms, trigger.catchup, trigger.catchup_window_ms, trigger.earliest, trigger.latest,
  job.updated_at as since`;

/** Triggers that may fire: their jobs are neither paused nor deleted. */
export function activeTriggers(db: Db, jobIds?: readonly string[]): Promise<TriggerRow[]> {
  const some = jobIds === undefined ? sql`true` : sql`job.id = any (${jobIds}::uuid[])`;
  return db.rows<TriggerRow>(sql`
    select ${triggerColumns}
      from trigger
      join job on job.id = trigger.job_id
     where trigger.removed_at is null and job.deleted_at is null and not job.paused and ${some}`);
}

export interface Firing {
  readonly triggerId: string;
  readonly instantMs: number;
}

/** `dues`: the due time of each firing; omitted for missed instants. */
export function fireTriggers(
  db: Db,
  firings: readonly Firing[],
  how: { priority: 'normal' | 'backfill'; order?: CatchupRow['policy']; at: Date; dues?: readonly Date[] },
): Promise<{ fired: number; created: number; killed: number; lanes: string[] | null }> {
  return db.one(sql`
    select fired, created, killed, lanes
      from fire_triggers(
        ${firings.map((f) => f.triggerId)}::uuid[],
        ${firings.map((f) => new Date(f.instantMs))}::timestamptz[],
        'schedule', ${how.priority}::priority, ${how.order ?? null}::text, ${how.at}::timestamptz,
        ${how.dues ?? null}::timestamptz[])`);
}

/** Moves the marks of triggers past instants that did not fire. */
export async function skipInstants(db: Db, skipped: readonly Firing[]): Promise<void> {
  await db.exec(sql`
    select move_triggers(
      ${skipped.map((f) => f.triggerId)}::uuid[],
      ${skipped.map((f) => new Date(f.instantMs))}::timestamptz[])`);
}

export type CatchupRow = {
  trigger_id: string;
  from_at: Date;
  to_at: Date;
  policy: 'earliest' | 'latest' | 'random';
  next_piece: number;
  pieces: number;
  seed: number;
};

/** With the plan by which it was cut (`catchup.ts`). */
export type PlannedCatchup = CatchupRow & { plan: string | null };

export async function releaseTokens(db: Db, max: number, at: Date): Promise<number> {
  return (await db.one<{ n: number }>(sql`select release_tokens(${max}::integer, ${at}::timestamptz) as n`)).n;
}

/**
 * Whether a sweep of tokens could have work: parked or gated runs, held tokens, active instants, lowered thresholds.
 *
 * Here and below, a subquery takes the first row of an index instead of `exists`. By the estimates for a table that was never
 * analysed, half of the rows are parked, so that `exists` scans a long queue from end to end and finds none.
 */
export async function anyWaiting(db: Db): Promise<boolean> {
  const { waiting } = await db.one<{ waiting: boolean }>(sql`
    select (select true from live where parked order by task_id limit 1) is not null
        or (select true from live where gate is not null order by gate limit 1) is not null
        or exists (select 1 from held)
        or exists (select 1 from active_instant)
        or exists (select 1 from lowered) as waiting`);
  return waiting;
}

/** Admits runs at limits that have room, in case an admission was missed. */
export function sweepGates(db: Db, max: number, at: Date): Promise<{ passed: number; killed: number }> {
  return db.one(sql`select passed, killed from sweep_gates(${max}::integer, ${at}::timestamptz)`);
}

export async function retireStrays(db: Db, max: number, at: Date): Promise<void> {
  await db.exec(sql`select retire_strays(${max}::integer, ${at}::timestamptz)`);
}

/** Marks full tokens that a concurrent stage counted by a threshold before it was lowered. */
export async function sweepLowered(db: Db, at: Date): Promise<void> {
  await db.exec(sql`select sweep_lowered(${at}::timestamptz)`);
}

export async function queueRetries(db: Db, max: number, at: Date): Promise<number> {
  return (await db.one<{ n: number }>(sql`select queue_retries(${max}::integer, ${at}::timestamptz) as n`)).n;
}

/** The due time of the next retry, rounded up to milliseconds so that it is never early. */
export async function nextRetryAt(db: Db): Promise<Date | undefined> {
  return (
    (
      await db.one<{ at: Date | null }>(
        sql`select date_trunc('milliseconds', min(due_at) + interval '999 microseconds') as at from retry`,
      )
    ).at ?? undefined
  );
}

export function takeBackRuns(
  db: Db,
  slackMs: number,
  at: Date,
): Promise<{ returned: number; failed: number; owners: (string | null)[] | null }> {
  return db.one(sql`
    select returned, failed, owners from take_back_runs(${slackMs}::integer * interval '1 millisecond', ${at}::timestamptz)`);
}

/** Whether workers hold any runs of this tenant. Usually they do not, and the sweep of leases can be skipped. */
export async function anyWithWorkers(db: Db): Promise<boolean> {
  const { held } = await db.one<{ held: boolean }>(sql`
    select (select true from live where worker_id is not null order by worker_id limit 1) is not null as held`);
  return held;
}

/** With more ready lanes than this, a hint names none. */
const maxLanes = 100;

/**
 * The lanes in which runs are ready (undefined: more than `maxLanes`), and whether running runs must be killed. Reads only the
 * first run of each lane.
 */
export async function findReadyLanes(db: Db): Promise<{ lanes: string[] | undefined; killed: boolean }> {
  const { lanes, killed } = await db.one<{ lanes: string[]; killed: boolean }>(sql`
    with recursive found as (
      (select lane from live where worker_id is null and not parked and gate is null order by lane limit 1)
      union all
      select (select lane from live
               where worker_id is null and not parked and gate is null and live.lane > found.lane
               order by lane limit 1)
        from found
       where found.lane is not null)
    select coalesce(array_agg(lane), '{}') as lanes,
           (select true from live where cancel and worker_id is not null order by worker_id limit 1) is not null as killed
      from (select lane from found where lane is not null limit ${maxLanes + 1}) as few`);
  return { lanes: lanes.length > maxLanes ? undefined : lanes, killed };
}

/** Whether messages to executions wait, and when the next timer of an execution that is not paused is due. */
export async function readFlowsOutlook(db: Db, now: Date): Promise<{ inbox: boolean; nextDueAt: Date | null }> {
  return db.one<{ inbox: boolean; nextDueAt: Date | null }>(sql`
    select exists (select from inbox where at <= ${now}) as inbox,
           (select timer.due_at
              from timer
              join execution on execution.id = timer.execution_id
             where execution.status <> 1
             order by timer.due_at
             limit 1) as "nextDueAt"`);
}
