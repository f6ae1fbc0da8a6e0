/** Projects: list, read, create or change, delete; their configuration for people, workers and tasks. */
import { isUniqueViolation, MillraceError } from '../../errors.ts';
import { type Recording, recording } from '../../events/append.ts';
import type { Input } from '../../http/endpoint.ts';
import { newId } from '../../kernel/id.ts';
import { type ApiContext, type ApiHandlers, author, requireFound } from '../context.ts';
import { announceDeletion, endJobs } from '../jobs/deletion.ts';
import type { projectEndpoints } from './endpoints.ts';
import {
  dropProjectStash,
  findConfig,
  findProject,
  findProjectNamed,
  findProjectWithCounts,
  insertProject,
  listJobsOfProject,
  listProjectJobs,
  listProjects,
  lockProject,
  lockProjectNamed,
  markProjectDeleted,
  type ProjectRow,
  updateProject,
} from './queries.ts';
import { restrictTask } from '../tasks/task-scope.ts';

type Endpoints = typeof projectEndpoints;
type Keys = Exclude<keyof Endpoints, `${string}/stash${string}`>;
type UpsertInput = Input<Endpoints['PUT /api/projects']>;

async function upsert(input: UpsertInput, ctx: ApiContext): Promise<ProjectRow> {
  const who = author(ctx, input.caller);
  const attempt = (): Promise<Saved> => recording(ctx.db, who, (tx) => save(tx, input.body, who.at));
  // of two concurrent requests for the same new project, the second finds the project of the first
  const saved = await attempt()
    .catch((error: unknown) => (isUniqueViolation(error) ? attempt() : Promise.reject(error)))
    .catch((error: unknown) => {
      if (!isUniqueViolation(error)) throw error;
      throw new MillraceError('conflict', `another project is called ${input.body.name}`, { cause: error });
    });
  if (saved.written) {
    ctx.hints.send('invalidate', { tenant: ctx.tenant.id, kind: 'project', id: saved.project.id });
    ctx.hints.send('events');
  }
  return saved.project;
}

interface Saved {
  readonly project: ProjectRow;
  readonly written: boolean;
}

async function save(tx: Recording, body: UpsertInput['body'], at: Date): Promise<Saved> {
  const { uuid, name, description, config } = body;
  const before = uuid === undefined ? await lockProjectNamed(tx, name) : await lockProject(tx, uuid);
  const project = { id: before?.id ?? uuid?.toLowerCase() ?? newId(), name, description };
  const record = (type: string): void => {
    // readers load hundreds of events at a time, so bodies must be small
    const beginning = description.slice(0, 1_000).toWellFormed();
    tx.record('millrace_projects', { type, subject: project.id, body: { name, description: beginning } });
  };
  if (before === undefined) {
    await insertProject(tx, { ...project, config, at });
    record('project.created');
    return { project, written: true };
  }
  const written = await updateProject(tx, { ...project, config, at });
  if (written) record(before.deleted ? 'project.created' : 'project.changed');
  return { project, written };
}

async function remove(input: Input<Endpoints['DELETE /api/projects/{id}']>, ctx: ApiContext): Promise<void> {
  const { id } = input.params;
  const who = author(ctx, input.caller);
  const { jobs, running } = await recording(ctx.db, who, async (tx) => {
    const locked = await lockProject(tx, id);
    const project = requireFound(locked?.deleted === true ? undefined : locked, 'project', id);
    const jobs = await listJobsOfProject(tx, id);
    await markProjectDeleted(tx, id, who.at);
    await dropProjectStash(tx, id);
    tx.record('millrace_projects', { type: 'project.deleted', subject: id, body: { name: project.name } });
    return { jobs, running: await endJobs(tx, jobs, who) };
  });
  ctx.hints.send('invalidate', { tenant: ctx.tenant.id, kind: 'project', id });
  announceDeletion(ctx, jobs, running);
}

export const projectHandlers: ApiHandlers<Pick<Endpoints, Keys>> = {
  'GET /api/projects': async ({ query }, ctx) => {
    if (query.name === undefined) return listProjects(ctx.db, { limit: query.limit, after: query.after });
    return requireFound(await findProjectNamed(ctx.db, query.name), 'project', query.name);
  },
  'POST /api/projects': upsert,
  'PUT /api/projects': upsert,
  'GET /api/projects/{id}': async ({ params }, ctx) =>
    requireFound(await findProjectWithCounts(ctx.db, params.id, new Date(ctx.time.now())), 'project', params.id),
  'DELETE /api/projects/{id}': remove,
  'GET /api/projects/{id}/jobs': async ({ params, query }, ctx) => {
    requireFound(await findProject(ctx.db, params.id), 'project', params.id);
    const { limit, after, name } = query;
    return listProjectJobs(ctx.db, params.id, { limit, after, name, at: new Date(ctx.time.now()) });
  },
  'GET /api/projects/{id}/config': async ({ params }, ctx) =>
    requireFound(await findConfig(ctx.db, params.id), 'project', params.id),
  'GET /int-api/projects/{id}/config': async ({ params, caller }, ctx) => {
    await restrictTask(ctx, caller, { project: params.id });
    return requireFound(await findConfig(ctx.db, params.id), 'project', params.id);
  },
};
