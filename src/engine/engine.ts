/** This version's engine: the contract of `contract/engine.ts`, put together from the rooms below. */
import type { ClientBase } from 'pg';
import { applyHandlers } from '../api/apply.ts';
import type { ApiContext, ApiHandlers } from '../api/context.ts';
import { tenantHandlers } from '../api/handlers.ts';
import { stashValuesFor } from '../api/stash.ts';
import { tenantEndpoints } from '../api/endpoints/table.ts';
import { contractNumber, type Engine, type EngineContext } from '../contract/engine.ts';
import type { DefinitionKey, TaskDefinition } from '../contract/wire.ts';
import { MillraceError } from '../errors.ts';
import { makeRouter, problemResponse } from '../http/router.ts';
import { cacheOf, readDefinitions } from '../jobs/task-definitions.ts';
import { packageFile, packageVersion } from '../kernel/package-files.ts';
import { onClient, onPool } from '../kernel/sql.ts';
import {
  type MigrateOptions,
  type Migration,
  migrateWithin,
  pendingMigrations,
  readMigrations,
} from '../postgres/migrate.ts';
import { cancellations, claimRuns, heldBy, renewLeases } from '../scheduler/claim.ts';
import { keepLogs } from '../scheduler/logs.ts';
import { pruneTenant } from '../scheduler/prune.ts';
import { applyReports } from '../scheduler/report.ts';
import { makeScheduler } from '../scheduler/scheduler.ts';
import { refuseUnwhole } from './wholeness.ts';

export const engineVersion: string = packageVersion;
export const migrationsFolder = (set: 'control' | 'tenant'): string => packageFile('migrations', set);

export const engine: Engine = {
  contract: contractNumber,
  version: engineVersion,
  pending: pendingOf,
  migrate: migrateTenant,
  scheduler: makeScheduler,
  fetch: serve,
  claim: (ctx, polls) => claimRuns(ctx, engineVersion, polls),
  report: applyReports,
  renew: renewLeases,
  cancellations,
  logs: keepLogs,
  definitions: readHeldDefinitions,
  stash: stashValuesFor,
  prune: pruneTenant,
};

async function readHeldDefinitions(
  { pool, tenant }: EngineContext,
  keys: readonly DefinitionKey[],
  worker?: string,
): Promise<TaskDefinition[]> {
  const db = onPool(pool);
  const held = worker === undefined ? keys : await heldBy(db, worker, keys);
  return readDefinitions(db, tenant.id, held, cacheOf(pool));
}

/** Read once: whoever takes a tenant up asks for them. */
let migrations: readonly Migration[] | undefined;

async function tenantMigrations(): Promise<MigrateOptions> {
  migrations ??= await readMigrations(migrationsFolder('tenant'));
  return { schema: 'millrace', migrations, version: engineVersion };
}

async function pendingOf(client: ClientBase): Promise<string[]> {
  const pending = await pendingMigrations(client, await tenantMigrations());
  if (pending.length === 0) await refuseUnwhole(client);
  return pending;
}

async function migrateTenant(client: ClientBase): Promise<string[]> {
  return migrateWithin(client, onClient(client), await tenantMigrations());
}

const handlers: ApiHandlers<typeof tenantEndpoints> = { ...tenantHandlers, ...applyHandlers };

const route = makeRouter<typeof tenantEndpoints, ApiContext>(tenantEndpoints, handlers, (error, { ctx, request }) =>
  ctx.log.error({ err: error, method: request.method, path: new URL(request.url).pathname }, 'a request failed'),
);

async function serve(request: Request, ctx: EngineContext, caller: Parameters<Engine['fetch']>[2]): Promise<Response> {
  const answer = await route(request, { ...ctx, db: onPool(ctx.pool) }, caller);
  if (answer) return answer;
  const path = new URL(request.url).pathname;
  return problemResponse(new MillraceError('not_found', `nothing is served at ${path}`), () => {});
}
