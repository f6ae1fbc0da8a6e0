/** Handlers that read jobs: documents, versions, tasks, triggers, graph, durations. Changes are in changes.ts. */
import { MillraceError } from '../../errors.ts';
import type { Input } from '../../http/endpoint.ts';
import { type ApiContext, type ApiHandlers, requireFound } from '../context.ts';
import type { jobEndpoints } from './endpoints.ts';
import { listEdges, listJobNames, listNodes } from './graph-queries.ts';
import { pauseJob, removeJob, runJobNow } from './changes.ts';
import {
  countTasks,
  findJob,
  findJobNamed,
  findJobWithCounts,
  type JobRow,
  listDurations,
  listJobs,
  listSeenTasks,
  listTriggers,
  findVersion,
  listVersions,
} from './queries.ts';
import { findProjectNamed } from '../projects/queries.ts';
import { nextFirings } from '../triggers/handlers.ts';
import { instantsOnPage } from '../page-size.ts';
import { toWire } from '../wire-times.ts';

type Endpoints = typeof jobEndpoints;
/** Endpoints with handlers elsewhere: applying documents, and tokens. */
type OtherKeys =
  | 'POST /api/jobs'
  | 'PUT /api/jobs'
  | 'POST /api/jobs/check'
  | 'GET /api/jobs/schema'
  | 'GET /api/jobs/{id}/runs/{instant}'
  | Extract<keyof Endpoints, `${string}/tokens${string}`>;

export async function requireJob(ctx: ApiContext, id: string): Promise<JobRow> {
  return requireFound(await findJob(ctx.db, id), 'job', id);
}

type ListInput = Input<Endpoints['GET /api/jobs']>;

async function findByName(ctx: ApiContext, { project, name }: ListInput['query']): Promise<JobRow | undefined> {
  if (project === undefined && name === undefined) return undefined;
  if (project === undefined || name === undefined) {
    const path = project === undefined ? 'query.project' : 'query.name';
    const message = 'both project and name are needed to find a job; with neither, all jobs are listed';
    throw new MillraceError('bad_request', `${path}: ${message}`, { faults: [{ path, message }] });
  }
  const { id } = requireFound(await findProjectNamed(ctx.db, project), 'project', project);
  return requireFound(await findJobNamed(ctx.db, id, name), 'job', `${project}/${name}`);
}

async function pageOfJobs(ctx: ApiContext, { limit, cursor }: ListInput['query']) {
  const after = cursor === undefined ? undefined : readCursor(cursor);
  const rows = await listJobs(ctx.db, { limit: limit + 1, after });
  const items = rows.slice(0, limit).map(toWire);
  const last = items.at(-1);
  return { items, next: rows.length > limit && last ? writeCursor([last.project, last.name]) : null };
}

/** The cursor of a list by project and name. */
export function writeCursor(names: readonly [string, string]): string {
  return Buffer.from(names.join('/')).toString('base64url');
}

/** Names contain no slash. A NUL is rejected for the database. Any other text is a valid position in the order. */
export function readCursor(cursor: string): readonly [string, string] {
  const [project, name, ...rest] = Buffer.from(cursor, 'base64url').toString().split('/');
  if (project !== undefined && name !== undefined && rest.length === 0 && !`${project}${name}`.includes('\0')) {
    return [project, name];
  }
  const fault = { path: 'query.cursor', message: 'is not the `next` of an earlier page' };
  throw new MillraceError('bad_request', `${fault.path}: ${fault.message}`, { faults: [fault] });
}

export const jobHandlers: ApiHandlers<Omit<Endpoints, OtherKeys>> = {
  'GET /api/jobs': async ({ query }, ctx) => (await findByName(ctx, query)) ?? pageOfJobs(ctx, query),
  'GET /api/jobs/{id}': async ({ params, query }, ctx) => {
    const job = requireFound(
      await findJobWithCounts(ctx.db, params.id, new Date(ctx.time.now()), query.document === 'true'),
      'job',
      params.id,
    );
    return { ...job, next_firing: (await nextFirings(ctx, [job.id])).get(job.id) ?? null };
  },
  'DELETE /api/jobs/{id}': removeJob,
  'GET /api/jobs/{id}/versions': async ({ params, query }, ctx) => {
    await requireJob(ctx, params.id);
    const rows = await listVersions(ctx.db, params.id, { limit: query.limit + 1, before: query.before });
    const items = rows.slice(0, query.limit).map(toWire);
    return { items, next: rows.length > query.limit ? String(items.at(-1)?.version) : null };
  },
  'GET /api/jobs/{id}/versions/{version}': async ({ params }, ctx) => {
    await requireJob(ctx, params.id);
    return toWire(
      requireFound(await findVersion(ctx.db, params.id, params.version), 'version', String(params.version)),
    );
  },
  'POST /api/jobs/{id}/run': runJobNow,
  'GET /api/jobs/{id}/tasks': async ({ params }, ctx) => {
    await requireJob(ctx, params.id);
    return (await listSeenTasks(ctx.db, params.id)).map(toWire);
  },
  'GET /api/jobs/{id}/paused': async ({ params }, ctx) => (await requireJob(ctx, params.id)).paused,
  'PUT /api/jobs/{id}/paused': pauseJob,
  'GET /api/jobs/{id}/graph': async ({ params, query }, ctx) => {
    await requireJob(ctx, params.id);
    const { edges, isComplete } = await listEdges(ctx.db, params.id);
    const joined = [...new Set(edges.flatMap(({ from, to }) => [from, to]))];
    const nodes = await listNodes(ctx.db, params.id, { instant: query.trigger_datetime, joined });
    const others = new Set(nodes.map((node) => node.job_id).filter((id) => id !== params.id));
    const jobs = others.size === 0 ? [] : await listJobNames(ctx.db, [...others]);
    return { nodes, edges, jobs, complete: isComplete };
  },
  'GET /api/jobs/{id}/duration': async ({ params, query }, ctx) => {
    await requireJob(ctx, params.id);
    const limit = instantsOnPage(query.limit, await countTasks(ctx.db, params.id));
    return { duration: (await listDurations(ctx.db, params.id, { ...query, limit })).map(toWire) };
  },
  'GET /api/jobs/{id}/triggers': async ({ params }, ctx) => {
    await requireJob(ctx, params.id);
    return (await listTriggers(ctx.db, params.id)).map(toWire);
  },
};
