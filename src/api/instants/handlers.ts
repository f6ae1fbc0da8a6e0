/**
 * The instants of a job. The state of an instant is derived from the states of its tokens: the first rule that matches. A
 * failure stays a failure even if another task handled it (`depends_failure`).
 */
import type { Input } from '../../http/endpoint.ts';
import { activateByFilter } from './activation.ts';
import { type ApiContext, type ApiHandlers } from '../context.ts';
import { type instantEndpoints, type instantStates, type TokenState, tokenStates } from './endpoints.ts';
import { type InstantRow, listInstants } from './queries.ts';
import { requireJob } from '../jobs/handlers.ts';

type Endpoints = typeof instantEndpoints;
type InstantState = (typeof instantStates)[number];

/** The states of tokens that decide the state of an instant, the strongest first. */
const rules: readonly (readonly [state: InstantState, made: readonly TokenState[]])[] = [
  ['running', ['running']],
  ['ready', ['ready']],
  ['retry', ['retry']],
  ['failure', ['failure', 'timeout', 'error']],
  ['cancelled', ['cancelled']],
  ['waiting', ['waiting']],
];

/** States that will change by themselves. */
const moving: ReadonlySet<InstantState> = new Set(['running', 'ready', 'retry']);
export const isMoving = (state: InstantState): boolean => moving.has(state);

export function instantState(tasks: Readonly<Record<TokenState, number>>): InstantState {
  return rules.find(([, made]) => made.some((state) => tasks[state] > 0))?.[0] ?? 'success';
}

/** Converts counts by Waterwheel's states to counts by our states. */
export function tallyStates(states: Readonly<Record<string, number>>): Record<TokenState, number> {
  const count = (state: TokenState): number => states[state === 'ready' ? 'active' : state] ?? 0;
  return Object.fromEntries(tokenStates.map((state) => [state, count(state)])) as Record<TokenState, number>;
}

function renderInstant({ instant, states, started_at, finished_at, active }: InstantRow) {
  const tasks = tallyStates(states);
  const state = instantState(tasks);
  return {
    instant: instant.toISOString(),
    state,
    tasks,
    started_at: started_at?.toISOString() ?? null,
    finished_at: isMoving(state) ? null : (finished_at?.toISOString() ?? null),
    active,
  };
}

async function list({ params, query }: Input<Endpoints['GET /api/jobs/{id}/instants']>, ctx: ApiContext) {
  await requireJob(ctx, params.id);
  const rows = await listInstants(ctx.db, params.id, { before: query.cursor, limit: query.limit + 1 });
  const items = rows.slice(0, query.limit).map(renderInstant);
  return { items, next: rows.length > query.limit ? (items.at(-1)?.instant ?? null) : null };
}

export const instantHandlers: ApiHandlers<Endpoints> = {
  'GET /api/jobs/{id}/instants': list,
  'POST /api/jobs/{id}/activate': activateByFilter,
};
