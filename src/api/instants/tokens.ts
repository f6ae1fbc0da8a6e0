/** The tokens of a job by instant: list, overview, one instant, clear; and the runs of an instant. */
import { recording } from '../../events/append.ts';
import type { Input } from '../../http/endpoint.ts';
import { type ApiContext, type ApiHandlers, author, requireFound } from '../context.ts';
import type { jobEndpoints } from '../jobs/endpoints.ts';
import { holdJob } from '../jobs/change-queries.ts';
import { countTasks } from '../jobs/queries.ts';
import { requireJob } from '../jobs/handlers.ts';
import { instantsOnPage } from '../page-size.ts';
import { listRunsOfInstant } from '../runs/queries.ts';
import { clearTokens, listTokens, listTokensAt, type TokenRow } from './token-queries.ts';
import { toWire } from '../wire-times.ts';

type Endpoints = typeof jobEndpoints;
type Keys = Extract<keyof Endpoints, `${string}/tokens${string}`> | 'GET /api/jobs/{id}/runs/{instant}';

type ListInput = Pick<Input<Endpoints['GET /api/jobs/{id}/tokens']>, 'params' | 'query'>;

async function tokensOf(input: ListInput, ctx: ApiContext): Promise<TokenRow[]> {
  await requireJob(ctx, input.params.id);
  const { state: states, before } = input.query;
  const limit = instantsOnPage(input.query.limit, await countTasks(ctx.db, input.params.id));
  return listTokens(ctx.db, input.params.id, { states, before, limit });
}

type TaskState = Pick<TokenRow, 'task_name' | 'task_id' | 'state'>;

/** Groups rows by instant, and keeps their order: newest first. */
function byInstant(rows: readonly TokenRow[]): { trigger_datetime: string; task_states: Record<string, TaskState> }[] {
  const instants = new Map<string, [string, TaskState][]>();
  for (const { trigger_datetime, ...rest } of rows) {
    const instant = trigger_datetime.toISOString();
    const states = instants.get(instant) ?? [];
    states.push([rest.task_name, rest]);
    instants.set(instant, states);
  }
  return [...instants].map(([instant, states]) => {
    return { trigger_datetime: instant, task_states: Object.fromEntries(states) };
  });
}

async function clear(input: Input<Endpoints['DELETE /api/jobs/{id}/tokens/{instant}']>, ctx: ApiContext) {
  const { id, instant } = input.params;
  const who = author(ctx, input.caller);
  const cleared = await recording(ctx.db, who, async (tx) => {
    const job = requireFound(await holdJob(tx, id), 'job', id);
    const cleared = await clearTokens(tx, job.id, instant, who.at);
    const body = { name: job.name, instant: instant.toISOString(), tokens: cleared };
    if (cleared > 0) tx.record('millrace_tokens', { type: 'tokens.cleared', subject: job.id, body });
    return cleared;
  });
  if (cleared > 0) ctx.hints.send('events');
  return { tokens_cleared: cleared };
}

export const tokenHandlers: ApiHandlers<Pick<Endpoints, Keys>> = {
  'GET /api/jobs/{id}/tokens': async (input, ctx) => (await tokensOf(input, ctx)).map(toWire),
  'GET /api/jobs/{id}/tokens-overview': async (input, ctx) => {
    const rows = await tokensOf(input, ctx);
    return { tokens: byInstant(rows), tasks: [...new Set(rows.map((row) => row.task_name))].sort() };
  },
  'GET /api/jobs/{id}/tokens/{instant}': async ({ params }, ctx) => {
    await requireJob(ctx, params.id);
    return (await listTokensAt(ctx.db, params.id, params.instant)).map(toWire);
  },
  'DELETE /api/jobs/{id}/tokens/{instant}': clear,
  'GET /api/jobs/{id}/runs/{instant}': async ({ params, query }, ctx) => {
    await requireJob(ctx, params.id);
    return (await listRunsOfInstant(ctx.db, params.id, params.instant, query.limit)).map(toWire);
  },
};
