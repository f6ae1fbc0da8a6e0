/** The history of an execution, a page at a time. */
import { MillraceError } from '../../../errors.ts';
import { readHistory } from '../../../flows/executions/history.ts';
import { maskerOf } from '../../../flows/executions/masking.ts';
import { readExecution } from '../../../flows/executions/stored.ts';
import { blankState, type FlowState } from '../../../flows/interpreter/state.ts';
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
  const { head, flow, state } = await requireExecution(ctx, params.id);
  const lengths = await entryLengths(ctx.db, { execution: head.id, after, limit: limit + 1 });
  const count = Math.min(limit, countWithin(lengths, maxReadChars));
  const [entries, before] = await Promise.all([
    count === 0 ? [] : readHistory(ctx, head.id, { after, limit: count }),
    stateAt(ctx, head.id, after),
  ]);
  const renderer = new HistoryRenderer(flow, before.nodes);
  const masked = maskerOf(flow, [before, ...entries.map(({ delta }) => delta), state]);
  const page = cutPage(entries, {
    limit,
    render: (entry) => renderer.render({ ...entry, delta: masked(entry.delta) }),
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

/** The state before a page. If the commits before it are not kept, the first change of each node has no `from`. */
async function stateAt(ctx: ApiContext, id: string, rev: number): Promise<FlowState> {
  if (rev === 0) return blankState;
  try {
    return (await readExecution(ctx, id, rev))?.state ?? blankState;
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'not_found') return blankState;
    throw error;
  }
}

export const executionHistoryHandlers: ApiHandlers<Endpoints> = { 'GET /api/executions/{id}/history': history };
