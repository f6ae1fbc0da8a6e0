/** Lists that come a page at a time, read to their end or to as many as are wanted. */
import type { Server } from './server.ts';

const largestPage = 1000;

/** Follows `next` until there is none. */
async function collect<T>(
  fetchPage: (cursor: string | undefined, limit: number) => Promise<{ items: readonly T[]; next: string | null }>,
  most: number = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const all: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await fetchPage(cursor, Math.min(largestPage, most - all.length));
    all.push(...page.items);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined && all.length < most);
  return all.slice(0, most);
}

/** Waterwheel's lists are bare arrays: the name of the last item leads to the next page. */
function afterLast<T extends { name: string }>(items: readonly T[], limit: number) {
  return { items, next: items.length < limit ? null : (items.at(-1)?.name ?? null) };
}

export function listProjects(server: Server) {
  return collect(async (after, limit) => {
    const found = await server.tenant('GET /api/projects', { query: { after, limit } });
    return afterLast(Array.isArray(found) ? found : [found], limit);
  });
}

export function listProjectJobs(server: Server, id: string) {
  return collect(async (after, limit) =>
    afterLast(await server.tenant('GET /api/projects/{id}/jobs', { params: { id }, query: { after, limit } }), limit),
  );
}

export function listJobs(server: Server) {
  return collect(async (cursor, limit) => {
    const page = await server.tenant('GET /api/jobs', { query: { cursor, limit } });
    return 'items' in page ? page : { items: [], next: null };
  });
}

export function listPools(server: Server) {
  return collect((cursor, limit) => server.tenant('GET /api/pools', { query: { cursor, limit } }));
}

/** Newest first, of one job or of all. */
export function listBackfills(server: Server, job: string | undefined, most: number) {
  return collect(
    (cursor, limit) =>
      job === undefined
        ? server.tenant('GET /api/backfills', { query: { cursor, limit } })
        : server.tenant('GET /api/jobs/{id}/backfills', { params: { id: job }, query: { cursor, limit } }),
    most,
  );
}

/** Newest first. */
export function listInstants(server: Server, job: string, most: number) {
  return collect(
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
  return collect((cursor, limit) => server.tenant('GET /api/runs', { query: { ...filter, cursor, limit } }), most);
}

export type RunItem = Awaited<ReturnType<typeof listRuns>>[number];
