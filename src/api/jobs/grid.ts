/** The grid of a job: instants by tasks, one letter per cell, with pages towards older or newer instants. */
import type { Input } from '../../http/endpoint.ts';
import { type ApiContext, badRequest } from '../context.ts';
import { cellLetters, type jobViewEndpoints } from './view-endpoints.ts';
import type { State } from '../shapes.ts';
import {
  findNeighbours,
  type GridRow,
  listGridInstants,
  listGridRows,
  listGridTasks,
  listEdgesFrom,
} from './grid-queries.ts';
import { instantState, tallyStates } from '../instants/handlers.ts';
import { requireJob } from './handlers.ts';
import { instantsOnPage } from '../page-size.ts';
import { inOrder } from './task-order.ts';

type Asked = Input<(typeof jobViewEndpoints)['GET /api/jobs/{id}/grid']>;

/** Maximum cells of a page. With 5 million old runs, 1,000 cells took 10 to 13 ms (measured), nearly all in index probes. */
const maxCells = 5_000;

export async function gridOf({ params, query }: Asked, ctx: ApiContext) {
  if (query.before && query.after) throw badRequest('query.after', 'give `before` or `after`, not both');
  await requireJob(ctx, params.id);
  const known = await listGridTasks(ctx.db, params.id);
  const own = known.map((task) => task.id);
  const tasks = inOrder(known, await listEdgesFrom(ctx.db, own));
  const ids = tasks.map((task) => task.id);
  const limit = instantsOnPage(query.limit, ids.length, maxCells);
  const { before, after } = query;
  const instants = await listGridInstants(ctx.db, ids, { before, after, limit });
  const [rows, beyond] = await Promise.all([
    listGridRows(ctx.db, ids, instants),
    beyondPage(ctx, ids, { instants, before, after }),
  ]);
  return { tasks, items: rows.map(renderInstant), ...beyond };
}

interface Found {
  /** Newest first, unless the page was requested by `after`. */
  readonly instants: readonly Date[];
  readonly before: Date | undefined;
  readonly after: Date | undefined;
}

/** Finds the cursors of the older and newer pages, also for an empty page. */
async function beyondPage(ctx: ApiContext, tasks: readonly string[], { instants, before, after }: Found) {
  const newestFirst = after === undefined ? instants : instants.toReversed();
  const oldest = newestFirst.at(-1) ?? (after && new Date(after.getTime() + 1)) ?? null;
  const newest = newestFirst[0] ?? (before && new Date(before.getTime() - 1)) ?? null;
  const { older, newer } = await findNeighbours(ctx.db, tasks, { before: oldest, after: newest });
  return {
    older: older ? (oldest?.toISOString() ?? null) : null,
    newer: newer ? (newest?.toISOString() ?? null) : null,
  };
}

function renderInstant({ instant, states }: GridRow) {
  return {
    instant: instant.toISOString(),
    state: instantState(tallyStates(countStates(states))),
    cells: states.map(letterOf).join(''),
  };
}

function countStates(states: GridRow['states']): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const state of states) if (state !== null) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

const letterOf = (state: State | null): string => cellLetters[state === null ? 'none' : wordOf(state)];
const wordOf = (state: State): keyof typeof cellLetters => (state === 'active' ? 'ready' : state);
