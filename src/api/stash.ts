/**
 * The stash: opaque bytes by name, encrypted at rest. The global one and a project's are written by people and read by
 * tasks; a job's own, one per instant, is written by its tasks for its tasks.
 */
import type { EngineContext } from '../contract/engine.ts';
import type { Caller } from '../contract/roles.ts';
import type { HeldRun } from '../contract/wire.ts';
import { onPool } from '../kernel/sql.ts';
import { type ApiContext, type ApiHandlers, found } from './context.ts';
import type { TenantEndpoints } from './endpoints/table.ts';
import { findProject } from './project-queries.ts';
import { knownJob } from './jobs.ts';
import { findSealed, findVisible, listNames, putEntry, removeEntry, type Stash } from './stash-queries.ts';
import { restrictTask, scopeOf } from './task-scope.ts';

type Keys = Extract<keyof TenantEndpoints, `${string}/stash${string}`>;

const shared: Stash = { kind: 'global' };

async function ofProject(ctx: ApiContext, project: string): Promise<Stash> {
  found(await findProject(ctx.db, project), 'project', project);
  return { kind: 'project', project };
}

async function ofJob(ctx: ApiContext, path: { id: string; instant: Date }, caller: Caller | undefined): Promise<Stash> {
  await restrictTask(ctx.db, caller, { job: path.id, instant: path.instant });
  await knownJob(ctx, path.id);
  return { kind: 'job', job: path.id, instant: path.instant };
}

function put(ctx: ApiContext, stash: Stash, name: string, plain: Buffer): Promise<void> {
  return putEntry(ctx.db, stash, name, ctx.secrets.encrypt(plain));
}

async function read(ctx: ApiContext, stash: Stash, name: string): Promise<Response> {
  const sealed = found(await findSealed(ctx.db, stash, name), 'stash entry', name);
  const plain = new Uint8Array(ctx.secrets.decrypt(sealed));
  return new Response(plain, { headers: { 'content-type': 'application/octet-stream', 'cache-control': 'no-store' } });
}

/** What a worker puts into a run's environment: the values of these names, base64; names without an entry are left out. */
export async function stashValuesFor(
  ctx: EngineContext,
  run: HeldRun,
  names: readonly string[],
): Promise<Record<string, string>> {
  const db = onPool(ctx.pool);
  const { project } = await scopeOf(db, run.run, run.lease);
  const entries = await findVisible(db, project, names);
  return Object.fromEntries(entries.map(({ name, data }) => [name, ctx.secrets.decrypt(data).toString('base64')]));
}

export const stashHandlers: ApiHandlers<Pick<TenantEndpoints, Keys>> = {
  'GET /api/stash': (_, ctx) => listNames(ctx.db, shared),
  'PUT /api/stash/{key}': ({ params, body }, ctx) => put(ctx, shared, params.key, body),
  'DELETE /api/stash/{key}': ({ params }, ctx) => removeEntry(ctx.db, shared, params.key),
  'GET /int-api/stash/{key}': async ({ params, caller }, ctx) => {
    await restrictTask(ctx.db, caller, {});
    return read(ctx, shared, params.key);
  },
  'GET /api/projects/{id}/stash': async ({ params }, ctx) => listNames(ctx.db, await ofProject(ctx, params.id)),
  'PUT /api/projects/{id}/stash/{key}': async ({ params, body }, ctx) =>
    put(ctx, await ofProject(ctx, params.id), params.key, body),
  'DELETE /api/projects/{id}/stash/{key}': async ({ params }, ctx) =>
    removeEntry(ctx.db, await ofProject(ctx, params.id), params.key),
  'GET /int-api/projects/{id}/stash/{key}': async ({ params, caller }, ctx) => {
    await restrictTask(ctx.db, caller, { project: params.id });
    return read(ctx, await ofProject(ctx, params.id), params.key);
  },
  'GET /int-api/jobs/{id}/stash/{instant}/': async ({ params, caller }, ctx) =>
    listNames(ctx.db, await ofJob(ctx, params, caller)),
  'GET /int-api/jobs/{id}/stash/{instant}/{key}': async ({ params, caller }, ctx) =>
    read(ctx, await ofJob(ctx, params, caller), params.key),
  'PUT /int-api/jobs/{id}/stash/{instant}/{key}': async ({ params, caller, body }, ctx) =>
    put(ctx, await ofJob(ctx, params, caller), params.key, body),
  'DELETE /int-api/jobs/{id}/stash/{instant}/{key}': async ({ params, caller }, ctx) =>
    removeEntry(ctx.db, await ofJob(ctx, params, caller), params.key),
};
