/**
 * The stash: named byte strings, encrypted at rest. People write the global stash and those of projects, and tasks read them.
 * A job has a stash per instant, which its tasks write and read.
 */
import type { EngineContext } from '../../contract/context.ts';
import type { FromWorker } from '../../contract/engine.ts';
import type { HeldRun, RuntimeBlock } from '../../contract/wire.ts';
import type { Caller } from '../../contract/roles.ts';
import { knownError, MillraceError } from '../../errors.ts';
import { recording } from '../../events/append.ts';
import { unsealObject } from '../../flows/executions/sealing.ts';
import { cutPage } from '../../http/page.ts';
import { cacheOf, readDefinitions } from '../../jobs/task-definitions.ts';
import { type Db, onPool } from '../../kernel/sql.ts';
import { declaredIn, explainStashExcess, maxStashBytes, stashNames } from '../../runtimes/task/environment.ts';
import { type ApiContext, type ApiHandlers, author, requireFound } from '../context.ts';
import type { TenantEndpoints } from '../endpoints.ts';
import { findProject } from '../projects/queries.ts';
import { requireJob } from '../jobs/handlers.ts';
import { findSealed, findVisible, listNames, putEntry, removeEntry, type Stash } from './queries.ts';
import { restrictTask, scopeOf } from '../tasks/task-scope.ts';

type Keys = Exclude<Extract<keyof TenantEndpoints, `${string}/stash${string}`>, 'POST /api/imports/stash'>;

const shared: PeoplesStash = { kind: 'global' };

async function ofProject(ctx: ApiContext, project: string): Promise<PeoplesStash> {
  requireFound(await findProject(ctx.db, project), 'project', project);
  return { kind: 'project', project };
}

async function ofJob(ctx: ApiContext, path: { id: string; instant: Date }, caller: Caller | undefined): Promise<Stash> {
  await restrictTask(ctx, caller, { job: path.id, instant: path.instant });
  await requireJob(ctx, path.id);
  return { kind: 'job', job: path.id, instant: path.instant };
}

/** Maximum names in a list without pages. A name has up to 200 characters. */
const maxNames = 10_000;
const identity = (name: string): string => name;

interface PageWish {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

async function namesOf(ctx: ApiContext, stash: Stash, { limit, cursor }: PageWish) {
  if (limit === undefined && cursor === undefined)
    return listNames(ctx.db, stash, { after: undefined, limit: maxNames });
  const size = limit ?? 1_000;
  const names = await listNames(ctx.db, stash, { after: cursor, limit: size + 1 });
  return cutPage(names, { limit: size, render: identity, cursorOf: identity });
}

function put(ctx: ApiContext, stash: Stash, name: string, plain: Buffer): Promise<void> {
  return putEntry(ctx.db, stash, name, ctx.secrets.encrypt(plain));
}

/** A stash whose changes are recorded as events, with the name but never the value. Those of a job's stash are not. */
type PeoplesStash = Exclude<Stash, { kind: 'job' }>;

interface Entry {
  readonly stash: PeoplesStash;
  readonly name: string;
}

async function changeWithEvent(
  ctx: ApiContext,
  caller: Caller | undefined,
  { stash, name }: Entry,
  change: { type: string; work: (tx: Db) => Promise<boolean> },
): Promise<void> {
  const subject = stash.kind === 'project' ? stash.project : null;
  await recording(ctx.db, author(ctx, caller), async (tx) => {
    if (await change.work(tx)) tx.record('millrace_projects', { type: change.type, subject, body: { key: name } });
  });
  ctx.hints.send('events');
}

function write(ctx: ApiContext, caller: Caller | undefined, entry: Entry, plain: Buffer): Promise<void> {
  const work = async (tx: Db): Promise<boolean> => {
    await putEntry(tx, entry.stash, entry.name, ctx.secrets.encrypt(plain));
    return true;
  };
  return changeWithEvent(ctx, caller, entry, { type: 'stash.written', work });
}

function remove(ctx: ApiContext, caller: Caller | undefined, entry: Entry): Promise<void> {
  const work = async (tx: Db): Promise<boolean> => (await removeEntry(tx, entry.stash, entry.name)) > 0;
  return changeWithEvent(ctx, caller, entry, { type: 'stash.removed', work });
}

async function read(ctx: ApiContext, stash: Stash, name: string): Promise<Response> {
  const sealed = requireFound(await findSealed(ctx.db, stash, name), 'stash entry', name);
  const plain = new Uint8Array(decrypt(ctx, name, sealed));
  return new Response(plain, { headers: { 'content-type': 'application/octet-stream', 'cache-control': 'no-store' } });
}

/** Maximum bytes read for a worker, which checks the exact limit of the plain values. Sealing adds 33 bytes to each. */
const maxSealedBytes = 2 * maxStashBytes;

/** Values for the environment of a run, in base64. Names without an entry are left out. */
export async function stashValuesFor(
  ctx: EngineContext,
  run: FromWorker<HeldRun>,
  names: readonly string[],
): Promise<Record<string, string>> {
  const db = onPool(ctx.pool);
  const { project, task, version, worker, work } = await scopeOf(db, run.run, run.lease);
  if (run.worker !== undefined && run.worker.toLowerCase() !== worker)
    throw new MillraceError('forbidden', 'this run is held by another worker');
  const { id: tenant } = ctx.tenant;
  const keys = task === null ? [] : [{ tenant, task, version }];
  const [definition] = await readDefinitions(db, { tenant }, keys, cacheOf(ctx.pool));
  const block = work === null ? definition?.runtime : (unsealObject(ctx.secrets, work)['runtime'] as RuntimeBlock);
  const named = new Set(block === undefined ? [] : stashNames(declaredIn(block)));
  const other = names.find((name) => !named.has(name));
  if (other !== undefined)
    throw new MillraceError('forbidden', `the task of this run does not name the stash entry ${other}`);
  const entries = await findVisible(db, { project, names, maxBytes: maxSealedBytes });
  if ('excessBytes' in entries) throw new MillraceError('stash_too_large', explainStashExcess(entries.excessBytes));
  return Object.fromEntries(entries.map(({ name, data }) => [name, decrypt(ctx, name, data).toString('base64')]));
}

/** Adds the name of the entry to the error. */
function decrypt({ secrets }: EngineContext, name: string, sealed: Buffer): Buffer {
  try {
    return secrets.decrypt(sealed);
  } catch (error) {
    const known = knownError(error);
    throw known ? new MillraceError(known.code, `stash entry ${name}: ${known.message}`, { cause: error }) : error;
  }
}

export const stashHandlers: ApiHandlers<Pick<TenantEndpoints, Keys>> = {
  'GET /api/stash': ({ query }, ctx) => namesOf(ctx, shared, query),
  'PUT /api/stash/{key}': ({ params, body, caller }, ctx) =>
    write(ctx, caller, { stash: shared, name: params.key }, body),
  'DELETE /api/stash/{key}': ({ params, caller }, ctx) => remove(ctx, caller, { stash: shared, name: params.key }),
  'GET /int-api/stash/{key}': async ({ params, caller }, ctx) => {
    await restrictTask(ctx, caller, {});
    return read(ctx, shared, params.key);
  },
  'GET /api/projects/{id}/stash': async ({ params, query }, ctx) =>
    namesOf(ctx, await ofProject(ctx, params.id), query),
  'PUT /api/projects/{id}/stash/{key}': async ({ params, body, caller }, ctx) =>
    write(ctx, caller, { stash: await ofProject(ctx, params.id), name: params.key }, body),
  'DELETE /api/projects/{id}/stash/{key}': async ({ params, caller }, ctx) =>
    remove(ctx, caller, { stash: await ofProject(ctx, params.id), name: params.key }),
  'GET /int-api/projects/{id}/stash/{key}': async ({ params, caller }, ctx) => {
    await restrictTask(ctx, caller, { project: params.id });
    return read(ctx, await ofProject(ctx, params.id), params.key);
  },
  'GET /int-api/jobs/{id}/stash/{instant}/': async ({ params, query, caller }, ctx) =>
    namesOf(ctx, await ofJob(ctx, params, caller), query),
  'GET /int-api/jobs/{id}/stash/{instant}/{key}': async ({ params, caller }, ctx) =>
    read(ctx, await ofJob(ctx, params, caller), params.key),
  'PUT /int-api/jobs/{id}/stash/{instant}/{key}': async ({ params, caller, body }, ctx) =>
    put(ctx, await ofJob(ctx, params, caller), params.key, body),
  'DELETE /int-api/jobs/{id}/stash/{instant}/{key}': async ({ params, caller }, ctx) => {
    await removeEntry(ctx.db, await ofJob(ctx, params, caller), params.key);
  },
};
