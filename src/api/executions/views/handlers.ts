/** Reads executions: searches them, and shows one as at any of its revisions. */
import { searchHeads } from '../../../flows/executions/search-heads.ts';
import { readExecution, type StoredExecution } from '../../../flows/executions/stored.ts';
import type { Input } from '../../../http/endpoint.ts';
import { cutPage } from '../../../http/page.ts';
import { type ApiContext, type ApiHandlers, requireFound } from '../../context.ts';
import { filterOf } from '../filter.ts';
import { viewExecution } from './detail.ts';
import type { executionViewEndpoints } from './endpoints.ts';
import { viewHead } from './head.ts';
import { type ExecutionDetail, maxNodes, workKey, type WorkIds } from './nodes.ts';
import { listWork } from './queries.ts';

type Endpoints = typeof executionViewEndpoints;
type Wish = Pick<Input<Endpoints['GET /api/executions/{id}']>, 'params' | 'query'>;

async function list({ query }: Input<Endpoints['GET /api/executions']>, { db }: ApiContext) {
  const { limit, ...filter } = query;
  const { heads, next } = await searchHeads(db, { ...filterOf(filter, 'query'), limit });
  const page = cutPage(heads, { limit, render: viewHead, cursorOf: ({ id }) => id });
  return { items: page.items, next: page.next ?? next };
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

async function workOf({ db }: ApiContext, { head, state }: StoredExecution): Promise<WorkIds> {
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
