/** The history of an execution, a page at a time. */
import { MillraceError } from '../../../errors.ts';
import { readHistory } from '../../../flows/executions/history.ts';
import { maskSealed } from '../../../flows/executions/masking.ts';
import { readExecution } from '../../../flows/executions/stored.ts';
import type { FlowState } from '../../../flows/interpreter/state.ts';
import type { Input } from '../../../http/endpoint.ts';
import { cutPage } from '../../../http/page.ts';
import type { ApiContext, ApiHandlers } from '../../context.ts';
import { requireExecution } from '../views/handlers.ts';
import type { executionHistoryEndpoints } from './endpoints.ts';
import { HistoryRenderer } from './entries.ts';
import { entryLengths } from './queries.ts';

type Endpoints = typeof executionHistoryEndpoints;

/** Characters of entries that are read at once. One entry may have some megabytes, and is read alone. */
const maxReadChars = 4 * 1024 * 1024;

async function history({ params, query }: Input<Endpoints['GET /api/executions/{id}/history']>, ctx: ApiContext) {
  const { after, limit } = query;
  const { head, flow } = await requireExecution(ctx, params.id);
  const lengths = await entryLengths(ctx.db, { execution: head.id, after, limit: limit + 1 });
  const count = Math.min(limit, countWithin(lengths, maxReadChars));
  const [entries, nodes] = await Promise.all([
    count === 0 ? [] : readHistory(ctx, head.id, { after, limit: count }),
    nodesAt(ctx, head.id, after),
  ]);
  const renderer = new HistoryRenderer(flow, nodes);
  const page = cutPage(entries, {
    limit,
    render: (entry) => renderer.render({ ...entry, delta: maskSealed(flow, entry.delta) }),
    cursorOf: ({ rev }) => String(rev),
  });
  const last = entries.at(-1);
  const isCut = lengths.length > count && last !== undefined;
  return { items: page.items, next: page.next ?? (isCut ? String(last.rev) : null) };
}

function countWithin(lengths: readonly { readonly chars: number }[], most: number): number {
  let sum = 0;
  const end = lengths.findIndex(({ chars }, i) => (sum += chars) > most && i > 0);
  return end < 0 ? lengths.length : end;
}

/** The nodes before a page. If the commits before it are not kept, the first change of each node has no `from`. */
async function nodesAt(ctx: ApiContext, id: string, rev: number): Promise<FlowState['nodes']> {
  if (rev === 0) return {};
  try {
    return (await readExecution(ctx, id, rev))?.state.nodes ?? {};
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'not_found') return {};
    throw error;
  }
}

export const executionHistoryHandlers: ApiHandlers<Endpoints> = { 'GET /api/executions/{id}/history': history };
