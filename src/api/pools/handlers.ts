/** Pools: list, create or change, delete. The scheduler is woken to admit waiting runs. */
import { MillraceError } from '../../errors.ts';
import { type Recording, recording } from '../../events/append.ts';
import type { Input } from '../../http/endpoint.ts';
import { type ApiContext, type ApiHandlers, author, requireFound } from '../context.ts';
import type { poolEndpoints } from './endpoints.ts';
import {
  deletePool,
  findPool,
  holdGates,
  insertPool,
  listPools,
  lockPool,
  namingTasks,
  type PoolRow,
  setPlaces,
} from './queries.ts';

type Endpoints = typeof poolEndpoints;

const renderPool = ({ name, places, used, waiting }: PoolRow) => ({ name, places, used, waiting });

async function list({ query }: Input<Endpoints['GET /api/pools']>, ctx: ApiContext) {
  const rows = await listPools(ctx.db, { after: query.cursor, limit: query.limit + 1 });
  const items = rows.slice(0, query.limit).map(renderPool);
  return { items, next: rows.length > query.limit ? (items.at(-1)?.name ?? null) : null };
}

async function set(input: Input<Endpoints['PUT /api/pools/{name}']>, ctx: ApiContext): Promise<Response> {
  const { name } = input.params;
  const { places } = input.body;
  const outcome = await recording(ctx.db, author(ctx, input.caller), async (tx) => {
    const id = await insertPool(tx, name, places);
    if (id === undefined) return change(tx, name, places);
    tx.record('millrace_jobs', { type: 'pool.created', subject: id, body: { name, places } });
    return 'created';
  });
  if (outcome !== 'same') sendHints(ctx);
  const pool = renderPool(requireFound(await findPool(ctx.db, name), 'pool', name));
  return Response.json(pool, { status: outcome === 'created' ? 201 : 200 });
}

async function change(tx: Recording, name: string, places: number): Promise<'changed' | 'same'> {
  const pool = requireFound(await lockPool(tx, name), 'pool', name);
  if (pool.places === places) return 'same';
  await setPlaces(tx, pool.id, places);
  tx.record('millrace_jobs', { type: 'pool.changed', subject: pool.id, body: { name, places, before: pool.places } });
  return 'changed';
}

async function remove(input: Input<Endpoints['DELETE /api/pools/{name}']>, ctx: ApiContext): Promise<void> {
  const { name } = input.params;
  await recording(ctx.db, author(ctx, input.caller), async (tx) => {
    await holdGates(tx);
    const pool = requireFound(await findPool(tx, name), 'pool', name);
    const [one, ...more] = await namingTasks(tx, pool.id, 100);
    if (one !== undefined) {
      const others = more.length === 0 ? '' : ` and ${more.length === 99 ? 'many' : more.length} more`;
      const task = `${one.project}/${one.job}/task/${one.task}`;
      throw new MillraceError('conflict', `the pool ${name} is in use: ${task}${others} names it`);
    }
    await deletePool(tx, pool.id);
    tx.record('millrace_jobs', { type: 'pool.deleted', subject: pool.id, body: { name } });
  });
  sendHints(ctx);
}

/** Wakes the token processor, which admits the runs that may pass now. */
function sendHints(ctx: ApiContext): void {
  for (const kind of ['tokens', 'events'] as const) ctx.hints.send(kind);
}

export const poolHandlers: ApiHandlers<Endpoints> = {
  'GET /api/pools': list,
  'PUT /api/pools/{name}': set,
  'DELETE /api/pools/{name}': remove,
};
