/** Reads the lists of the API: all items, or at most a given number. */
import { collectPages, pageAfterLast, pageIn } from '../../http/client.ts';
import type { Server } from './server.ts';

export function listProjects(server: Server) {
  return collectPages(async (after, limit) => {
    const found = await server.tenant('GET /api/projects', { query: { after, limit } });
    return pageAfterLast(Array.isArray(found) ? found : [found], limit);
  });
}

export function listProjectJobs(server: Server, id: string) {
  return collectPages(async (after, limit) =>
    pageAfterLast(
      await server.tenant('GET /api/projects/{id}/jobs', { params: { id }, query: { after, limit } }),
      limit,
    ),
  );
}

export function listJobs(server: Server) {
  return collectPages(async (cursor, limit) => {
    const page = await server.tenant('GET /api/jobs', { query: { cursor, limit } });
    return 'items' in page ? page : { items: [], next: null };
  });
}

export function listPools(server: Server) {
  return collectPages((cursor, limit) => server.tenant('GET /api/pools', { query: { cursor, limit } }));
}

/** Newest first, of one job or of all jobs. */
export function listBackfills(server: Server, job: string | undefined, most: number) {
  return collectPages(
    (cursor, limit) =>
      job === undefined
        ? server.tenant('GET /api/backfills', { query: { cursor, limit } })
        : server.tenant('GET /api/jobs/{id}/backfills', { params: { id: job }, query: { cursor, limit } }),
    most,
  );
}

/** Newest first. */
export function listInstants(server: Server, job: string, most: number) {
  return collectPages(
    (cursor, limit) => server.tenant('GET /api/jobs/{id}/instants', { params: { id: job }, query: { cursor, limit } }),
    most,
  );
}

export interface RunFilter {
  readonly job?: string | undefined;
  readonly task?: string | undefined;
  readonly instant?: string | undefined;
  readonly state?: string | undefined;
}

/** Newest first. */
export function listRuns(server: Server, filter: RunFilter, most: number) {
  return collectPages((cursor, limit) => server.tenant('GET /api/runs', { query: { ...filter, cursor, limit } }), most);
}

export type RunItem = Awaited<ReturnType<typeof listRuns>>[number];

export function listTenants(server: Server) {
  return collectPages((cursor, limit) => server.gateway('GET /api/tenants', { query: { cursor, limit } }));
}

export function listKeys(server: Server) {
  return collectPages((cursor, limit) => server.gateway('GET /api/keys', { query: { cursor, limit } }));
}

/** The most recently used first. */
export async function listSessions(server: Server) {
  const all = await collectPages((cursor, limit) => server.gateway('GET /api/sessions', { query: { cursor, limit } }));
  return all.toSorted((a, b) => Date.parse(b.used_at) - Date.parse(a.used_at));
}

/** All slots with their holders, and all that wait for one. */
export async function listSlots(server: Server) {
  let counts = { limit: 0, taken: 0, waiting: 0 };
  const items = await collectPages(async (cursor, pageLimit) => {
    const { limit, taken, waiting, ...page } = await server.gateway('GET /api/slots', {
      query: { cursor, limit: pageLimit },
    });
    counts = { limit, taken, waiting };
    return page;
  });
  return { ...counts, items };
}

export function listWorkers(server: Server) {
  return collectPages(async (cursor, limit) =>
    pageIn(await server.tenant('GET /api/workers', { query: { cursor, limit } })),
  );
}

/** The names in the stash of a project, or in the one that all projects share. */
export function listStashNames(server: Server, project: string | undefined) {
  return collectPages(async (cursor, limit) => {
    const query = { cursor, limit };
    const answer =
      project === undefined
        ? await server.tenant('GET /api/stash', { query })
        : await server.tenant('GET /api/projects/{id}/stash', { params: { id: project }, query });
    return pageIn(answer);
  });
}

/** Tenants at a version according to their databases, and tenants whose databases could not be read. */
export async function listEngineUsers(server: Server, version: string) {
  const tenants: string[] = [];
  const unknown: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await server.gateway('GET /api/engines/{version}/users', { params: { version }, query: { cursor } });
    tenants.push(...page.tenants);
    unknown.push(...page.unknown);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  return { tenants, unknown };
}

export async function listTopics(server: Server) {
  return pageIn(await server.tenant('GET /bus/topics')).items;
}

/** By name. */
export function listSubscribers(server: Server) {
  return collectPages(async (cursor, limit) =>
    pageIn(await server.tenant('GET /bus/subscribers', { query: { cursor, limit } })),
  );
}

/** Newest first, of one subscriber or of all that the caller may see. */
export function listDeadLetters(server: Server, subscriber: string | undefined, most: number) {
  return collectPages(
    (cursor, limit) => server.tenant('GET /bus/dead_letters', { query: { subscriber, cursor, limit } }),
    most,
  );
}

/** By name. */
export function listFlows(server: Server) {
  return collectPages((cursor, limit) => server.tenant('GET /api/flows', { query: { cursor, limit } }));
}

/** The filter of executions, as the API writes it. */
export interface ExecutionFilter {
  readonly flow?: string | undefined;
  readonly version?: number | undefined;
  readonly status?: string | undefined;
  /** `name:value` */
  readonly label?: string | undefined;
  readonly key?: string | undefined;
  readonly created_after?: string | undefined;
  readonly created_before?: string | undefined;
}

/** Newest first. */
export function listExecutions(
  server: Server,
  filter: ExecutionFilter & { readonly parent?: string | undefined },
  most: number,
) {
  return collectPages(
    (cursor, limit) => server.tenant('GET /api/executions', { query: { ...filter, cursor, limit } }),
    most,
  );
}

export interface WorkitemFilter {
  readonly assignee?: string | undefined;
  readonly team?: string | undefined;
  readonly execution?: string | undefined;
  readonly mine?: 'true' | undefined;
}

/** Oldest first. */
export function listWorkitems(server: Server, filter: WorkitemFilter, most: number) {
  return collectPages(
    (cursor, limit) => server.tenant('GET /api/workitems', { query: { ...filter, cursor, limit } }),
    most,
  );
}
