/** Reads executions: searches them, and shows one as at any of its revisions. */
import { type HeadFilter, searchHeads } from '../../../flows/executions/heads.ts';
import { readExecution, type StoredExecution } from '../../../flows/executions/stored.ts';
import type { Input } from '../../../http/endpoint.ts';
import { cutPage } from '../../../http/page.ts';
import { isId } from '../../../kernel/id.ts';
import { type ApiContext, type ApiHandlers, badRequest, requireFound } from '../../context.ts';
import { viewExecution } from './detail.ts';
import type { executionViewEndpoints } from './endpoints.ts';
import { viewHead } from './head.ts';
import { type ExecutionDetail, maxNodes, workKey, type WorkIds } from './nodes.ts';
import { listWork } from './queries.ts';

type Endpoints = typeof executionViewEndpoints;
type ListQuery = Input<Endpoints['GET /api/executions']>['query'];
type Wish = Pick<Input<Endpoints['GET /api/executions/{id}']>, 'params' | 'query'>;

/** The part of a filter that lists and operations on many have in common. */
export function filterOf(query: Omit<ListQuery, 'limit'>): Omit<HeadFilter, 'limit'> {
  const { flow, version, status, label, key, cursor, parent } = query;
  if (cursor !== undefined && !isId(cursor)) throw badRequest('query.cursor', 'is not `next` of a page');
  return {
    flow,
    version,
    status,
    key,
    parent,
    cursor,
    labels: label && { [label.name]: label.value },
    createdAfter: query.created_after,
    createdBefore: query.created_before,
  };
}

async function list({ query }: Input<Endpoints['GET /api/executions']>, { db }: ApiContext) {
  const rows = await searchHeads(db, { ...filterOf(query), limit: query.limit + 1 });
  return cutPage(rows, { limit: query.limit, render: viewHead, cursorOf: ({ id }) => id });
}

export async function requireExecution(ctx: ApiContext, id: string, rev?: number): Promise<StoredExecution> {
  return requireFound(await readExecution(ctx, id.toLowerCase(), rev), 'execution', id);
}

async function show({ params, query }: Wish, ctx: ApiContext): Promise<ExecutionDetail> {
  const stored = await requireExecution(ctx, params.id, query.rev);
  const [work, living] = await Promise.all([workOf(ctx, stored), ctx.directory.conductors?.()]);
  return viewExecution(stored, {
    work,
    living: living && new Set(living.map(({ id }) => id)),
    rev: query.rev ?? stored.head.rev,
  });
}

export async function workOf({ db }: ApiContext, { head, state }: StoredExecution): Promise<WorkIds> {
  const nids = Object.keys(state.nodes).slice(0, maxNodes);
  const rows = nids.length === 0 ? [] : await listWork(db, head.id, nids);
  const ofKind = (kind: 'run' | 'workitem') =>
    new Map(
      rows.filter((row) => row.kind === kind).map(({ nid, attempt, id }) => [workKey(nid, attempt), id] as const),
    );
  return { runs: ofKind('run'), workitems: ofKind('workitem') };
}

async function showDocument({ params, query }: Wish, ctx: ApiContext) {
  const { document } = await requireExecution(ctx, params.id, query.rev);
  return document;
}

export const executionViewHandlers: ApiHandlers<Endpoints> = {
  'GET /api/executions': list,
  'GET /api/executions/{id}': show,
  'GET /api/executions/{id}/document': showDocument,
};
