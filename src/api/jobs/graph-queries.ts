/** Statements for a job's graph: its tasks and triggers, whatever of other jobs they are joined to, and the edges. */
import { type Db, type Sql, sql } from '../../kernel/sql.ts';
import type { State } from '../shapes.ts';
import { tokenState } from '../instants/token-state.ts';

export type NodeRow = {
  readonly id: string;
  readonly kind: 'task' | 'trigger';
  readonly name: string;
  readonly job_id: string;
  readonly state: State | null;
};

/** The job's own tasks and triggers, as two common table expressions. */
function ownParts(job: string): Sql {
  return sql`
    own as (
      select id
        from task
       where job_id = ${job} and removed_at is null
    ),
    own_triggers as (
      select id
        from trigger
       where job_id = ${job} and removed_at is null
    )`;
}

/** With an instant, the states of the tokens there; a task without one has none. */
export function listNodes(db: Db, job: string, instant: Date | undefined): Promise<NodeRow[]> {
  return db.rows<NodeRow>(sql`
    with ${ownParts(job)},
    tasks as (
      select id from own
      union
      select parent_id from task_edge where child_id in (select id from own)
      union
      select child_id from task_edge where parent_id in (select id from own)
      union
      select task_id from trigger_edge where trigger_id in (select id from own_triggers)
    ),
    triggers as (
      select id from own_triggers
      union
      select trigger_id from trigger_edge where task_id in (select id from own)
    )
    select trigger.id, 'trigger' as kind, trigger.name, trigger.job_id, null as state
      from triggers
      join trigger using (id)
    union all
    select task.id, 'task', task.name, task.job_id,
           (select ${tokenState}
              from token t
             where t.task_id = task.id and t.instant = ${instant ?? null}::timestamptz)
      from tasks
      join task using (id)
     order by kind desc, name, id`);
}

export type EdgeRow = {
  readonly from: string;
  readonly to: string;
  readonly kind: 'success' | 'failure' | 'done' | 'trigger';
};

/** Every edge that begins or ends in the job. */
export function listEdges(db: Db, job: string): Promise<EdgeRow[]> {
  return db.rows<EdgeRow>(sql`
    with ${ownParts(job)}
    select trigger_id as "from", task_id as "to", 'trigger' as kind
      from trigger_edge
     where trigger_id in (select id from own_triggers) or task_id in (select id from own)
    union
    select parent_id, child_id, kind::text
      from task_edge
     where parent_id in (select id from own) or child_id in (select id from own)
     order by 1, 2, 3`);
}

export type JobNameRow = { readonly id: string; readonly name: string; readonly project: string };

export function listJobNames(db: Db, jobs: readonly string[]): Promise<JobNameRow[]> {
  return db.rows<JobNameRow>(sql`
    select job.id, job.name, project.name as project
      from job
      join project on project.id = job.project_id
     where job.id = any(${jobs}::uuid[])
     order by project.name, job.name`);
}
