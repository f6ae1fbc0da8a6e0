/** Statements for the graph of a job: its tasks and triggers, those of other jobs that edges lead to, and the edges. */
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

/**
 * The job's own tasks and triggers, and those of other jobs among `joined`, the ends of its edges. With an instant, the states
 * of the tokens there; a task without a token has none.
 */
export function listNodes(
  db: Db,
  job: string,
  { instant, joined }: { readonly instant: Date | undefined; readonly joined: readonly string[] },
): Promise<NodeRow[]> {
  return db.rows<NodeRow>(sql`
    with ${ownParts(job)},
    joined as (
      select unnest(${joined}::uuid[]) as id
    ),
    tasks as (
      select id from own
      union
      select id from joined
    ),
    triggers as (
      select id from own_triggers
      union
      select id from joined
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

/** Maximum edges from the job to tasks of other jobs. Any number of jobs may depend on this one. */
const maxLeavingEdges = 2_000;

/** The edges that end in the job, which its document bounds, and the first of those that leave it. */
export async function listEdges(db: Db, job: string): Promise<{ edges: EdgeRow[]; isComplete: boolean }> {
  const rows = await db.rows<EdgeRow & { leaves: boolean }>(sql`
    with ${ownParts(job)},
    leaving as (
      select trigger_id as "from", task_id as "to", 'trigger' as kind
        from trigger_edge
       where trigger_id in (select id from own_triggers) and task_id not in (select id from own)
      union all
      select parent_id, child_id, kind::text
        from task_edge
       where parent_id in (select id from own) and child_id not in (select id from own)
       order by 1, 2, 3
       limit ${maxLeavingEdges + 1}
    )
    select trigger_id as "from", task_id as "to", 'trigger' as kind, false as leaves
      from trigger_edge
     where task_id in (select id from own)
    union all
    select parent_id, child_id, kind::text, false
      from task_edge
     where child_id in (select id from own)
    union all
    select "from", "to", kind, true
      from leaving
     order by 4, 1, 2, 3`);
  return cutLeaving(rows);
}

function cutLeaving(rows: readonly (EdgeRow & { readonly leaves: boolean })[]) {
  const isComplete = rows.filter(({ leaves }) => leaves).length <= maxLeavingEdges;
  const kept = isComplete ? rows : rows.slice(0, -1);
  return { edges: kept.map(({ from, to, kind }) => ({ from, to, kind })), isComplete };
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
