/** Statements that find the names of subjects, one per kind. A deleted subject still has a name, but no page. */
import { type Db, sql } from '../../kernel/sql.ts';

export type NamedRow = { readonly id: string; readonly name: string; readonly gone: boolean };

export function nameProjects(db: Db, ids: readonly string[]): Promise<NamedRow[]> {
  return db.rows<NamedRow>(sql`
    select id, name, deleted_at is not null as gone
      from project
     where id = any (${ids}::uuid[])`);
}

export function nameJobs(db: Db, ids: readonly string[]): Promise<NamedRow[]> {
  return db.rows<NamedRow>(sql`
    select job.id, project.name || '/' || job.name as name, job.deleted_at is not null as gone
      from job
      join project on project.id = job.project_id
     where job.id = any (${ids}::uuid[])`);
}

export function nameBackfills(db: Db, ids: readonly string[]): Promise<NamedRow[]> {
  return db.rows<NamedRow>(sql`
    select backfill.id, project.name || '/' || job.name as name, false as gone
      from backfill
      join job on job.id = backfill.job_id
      join project on project.id = job.project_id
     where backfill.id = any (${ids}::uuid[])`);
}

/** Leaves out runs that retention has deleted. */
export function nameRuns(db: Db, ids: readonly string[]): Promise<NamedRow[]> {
  return db.rows<NamedRow>(sql`
    select r.id, coalesce(project.name || '/' || job.name || '/' || task.name, node_run.work ->> 'name') as name,
           false as gone
      from (
        select live.id, live.task_id from live where live.id = any (${ids}::uuid[])
        union all
        select run.id, run.task_id from run where run.id = any (${ids}::uuid[])
      ) as r
      left join task on task.id = r.task_id
      left join job on job.id = task.job_id
      left join project on project.id = job.project_id
      left join node_run on node_run.run_id = r.id
     where task.id is not null or node_run.run_id is not null`);
}

/** Leaves out subscribers that are deleted: their events have the name. */
export function nameSubscribers(db: Db, ids: readonly string[]): Promise<NamedRow[]> {
  return db.rows<NamedRow>(sql`
    select id, name, false as gone
      from subscriber
     where id = any (${ids}::uuid[])`);
}

export function nameFlows(db: Db, ids: readonly string[]): Promise<NamedRow[]> {
  return db.rows<NamedRow>(sql`
    select id, name, deleted_at is not null as gone
      from flow
     where id = any (${ids}::uuid[])`);
}

/** By the flow, and the key if it has one. Leaves out executions that retention has deleted. */
export function nameExecutions(db: Db, ids: readonly string[]): Promise<NamedRow[]> {
  return db.rows<NamedRow>(sql`
    select execution.id, flow.name || coalesce(' ' || execution.key, '') as name, false as gone
      from execution
      join flow on flow.id = execution.flow_id
     where execution.id = any (${ids}::uuid[])`);
}
