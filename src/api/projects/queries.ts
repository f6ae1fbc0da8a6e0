/** Statements about projects. They do not find deleted projects, unless stated. */
import { allOf, type Db, sql } from '../../kernel/sql.ts';
import { listedText } from '../page-size.ts';
import { runCounts, totals } from '../runs/counts.ts';

export type ProjectRow = { readonly id: string; readonly name: string; readonly description: string };

export function listProjects(db: Db, page: { limit: number; after: string | undefined }): Promise<ProjectRow[]> {
  const further = page.after === undefined ? sql`true` : sql`name > ${page.after}`;
  return db.rows<ProjectRow>(sql`
    select id, name, ${listedText(sql`description`)} as description
      from project
     where deleted_at is null and ${further}
     order by name
     limit ${page.limit}`);
}

export function findProjectNamed(db: Db, name: string): Promise<ProjectRow | undefined> {
  return db.maybeOne<ProjectRow>(sql`
    select id, name, description
      from project
     where name = ${name} and deleted_at is null`);
}

export function findProject(db: Db, id: string): Promise<ProjectRow | undefined> {
  return db.maybeOne<ProjectRow>(sql`
    select id, name, description
      from project
     where id = ${id} and deleted_at is null`);
}

export type ProjectCounts = ProjectRow & {
  readonly num_jobs: number;
  readonly running_tasks: number;
  readonly waiting_tasks: number;
  readonly succeeded_tasks_last_hour: number;
  readonly failed_tasks_last_hour: number;
  readonly error_tasks_last_hour: number;
};

export function findProjectWithCounts(db: Db, id: string, at: Date): Promise<ProjectCounts | undefined> {
  return db.maybeOne<ProjectCounts>(sql`
    with tasks as (
      select task.id
        from task
        join job on job.id = task.job_id
       where job.project_id = ${id}
    ),
    counts as (${runCounts(at)})
    select project.id, project.name, project.description,
           (select count(*)::integer from job where project_id = project.id and deleted_at is null) as num_jobs,
           coalesce(sum(counts.running), 0)::integer as running_tasks, ${totals}
      from project
      left join counts on true
     where project.id = ${id} and project.deleted_at is null
     group by project.id`);
}

export type ProjectJob = {
  readonly job_id: string;
  readonly name: string;
  readonly description: string;
  readonly paused: boolean;
  readonly success: number;
  readonly running: number;
  readonly failure: number;
  readonly waiting: number;
  readonly error: number;
};

export interface ProjectJobsPage {
  readonly limit: number;
  readonly after: string | undefined;
  readonly name: string | undefined;
  readonly at: Date;
}

export function listProjectJobs(db: Db, project: string, page: ProjectJobsPage): Promise<ProjectJob[]> {
  const further = page.after === undefined ? [] : [sql`name > ${page.after}`];
  const named = page.name === undefined ? [] : [sql`name = ${page.name}`];
  return db.rows<ProjectJob>(sql`
    with page as (
      select id, name, ${listedText(sql`description`)} as description, paused
        from job
       where project_id = ${project} and deleted_at is null and ${allOf([...further, ...named])}
       order by name
       limit ${page.limit}
    ),
    tasks as (
      select task.id, task.job_id
        from task
        join page on page.id = task.job_id
    ),
    counts as (${runCounts(page.at)})
    select page.id as job_id, page.name, page.description, page.paused,
           coalesce(sum(counts.success), 0)::integer as success,
           coalesce(sum(counts.running), 0)::integer as running,
           coalesce(sum(counts.failure), 0)::integer as failure,
           coalesce(sum(counts.waiting), 0)::integer as waiting,
           coalesce(sum(counts.error), 0)::integer as error
      from page
      left join tasks on tasks.job_id = page.id
      left join counts on counts.task_id = tasks.id
     group by page.id, page.name, page.description, page.paused
     order by page.name`);
}

export async function findConfig(db: Db, id: string): Promise<Record<string, unknown> | undefined> {
  const row = await db.maybeOne<{ config: Record<string, unknown> }>(sql`
    select config
      from project
     where id = ${id} and deleted_at is null`);
  return row?.config;
}

export type LockedProject = ProjectRow & { readonly deleted: boolean };

/** Also finds a deleted project, because its uuid may be used again. */
export function lockProject(db: Db, id: string): Promise<LockedProject | undefined> {
  return db.maybeOne<LockedProject>(sql`
    select id, name, description, deleted_at is not null as deleted
      from project
     where id = ${id}
       for update`);
}

export function lockProjectNamed(db: Db, name: string): Promise<LockedProject | undefined> {
  return db.maybeOne<LockedProject>(sql`
    select id, name, description, false as deleted
      from project
     where name = ${name} and deleted_at is null
       for update`);
}

export interface ProjectDraft {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  /** Undefined keeps the old one. */
  readonly config: Readonly<Record<string, unknown>> | undefined;
  readonly at: Date;
}

export async function insertProject(db: Db, draft: ProjectDraft): Promise<void> {
  await db.exec(sql`
    insert into project (id, name, description, config, created_at, updated_at)
    values (${draft.id}, ${draft.name}, ${draft.description}, ${JSON.stringify(draft.config ?? {})}, ${draft.at}, ${draft.at})`);
}

/** Returns false if nothing changes. */
export async function updateProject(db: Db, draft: ProjectDraft): Promise<boolean> {
  const config = draft.config === undefined ? null : JSON.stringify(draft.config);
  const changed = await db.exec(sql`
    update project
       set name = ${draft.name}, description = ${draft.description}, config = coalesce(${config}::jsonb, config),
           updated_at = ${draft.at}, deleted_at = null
     where id = ${draft.id}
       and (name, description, config, deleted_at is not null)
           is distinct from (${draft.name}, ${draft.description}, coalesce(${config}::jsonb, config), false)`);
  return changed > 0;
}

export async function markProjectDeleted(db: Db, id: string, at: Date): Promise<void> {
  await db.exec(sql`
    update project
       set deleted_at = ${at}, updated_at = ${at}
     where id = ${id}`);
}

export async function dropProjectStash(db: Db, id: string): Promise<void> {
  await db.exec(sql`
    delete from project_stash
     where project_id = ${id}`);
}

export function listJobsOfProject(db: Db, project: string): Promise<{ id: string; name: string }[]> {
  return db.rows(sql`
    select id, name
      from job
     where project_id = ${project} and deleted_at is null
     order by id`);
}
