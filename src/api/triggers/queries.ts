/** Statements that read triggers in the form that the scheduler uses. */
import { type Db, sql } from '../../kernel/sql.ts';
import { type TriggerRow, triggerColumns } from '../../scheduler/queries.ts';

export type ScheduledTrigger = TriggerRow & { readonly name: string; readonly paused: boolean };

const scheduled = sql`
    select ${triggerColumns}, trigger.name, job.paused
      from trigger
      join job on job.id = trigger.job_id
     where trigger.removed_at is null and job.deleted_at is null`;

export function findScheduled(db: Db, id: string): Promise<ScheduledTrigger | undefined> {
  return db.maybeOne<ScheduledTrigger>(sql`${scheduled} and trigger.id = ${id}`);
}

/** The triggers of some jobs. */
export function listScheduled(db: Db, jobs: readonly string[]): Promise<ScheduledTrigger[]> {
  return db.rows<ScheduledTrigger>(sql`${scheduled} and job.id = any (${jobs}::uuid[]) order by trigger.name`);
}

export type KnownTrigger = {
  readonly id: string;
  readonly name: string;
  readonly earliest: Date | null;
  readonly latest: Date | null;
  readonly removed_at: Date | null;
};

/** Finds the job of a document without a uuid, by project and name. */
export async function findJobId(db: Db, job: { project: string; name: string }): Promise<string | undefined> {
  const row = await db.maybeOne<{ id: string }>(sql`
    select job.id
      from job
      join project on project.id = job.project_id
     where project.name = ${job.project} and project.deleted_at is null
       and job.name = ${job.name} and job.deleted_at is null`);
  return row?.id;
}

export interface KnownJob {
  readonly paused: boolean;
  /** All triggers, including removed ones. */
  readonly triggers: readonly KnownTrigger[];
}

/** The job before the document is applied. A job that does not exist has no triggers. */
export async function listKnown(db: Db, job: string): Promise<KnownJob> {
  const rows = await db.rows<KnownTrigger & { paused: boolean }>(sql`
    select trigger.id, trigger.name, trigger.earliest, trigger.latest, trigger.removed_at, job.paused
      from job
      left join trigger on trigger.job_id = job.id
     where job.id = ${job}`);
  return { paused: rows[0]?.paused ?? false, triggers: rows };
}
