/** The engine of this version. It implements `contract/engine.ts` with the rooms below. */
import type { ClientBase } from 'pg';
import { applyHandlers } from '../api/jobs/apply.ts';
import type { ApiContext, ApiHandlers } from '../api/context.ts';
import { apiHandlers } from '../api/handlers.ts';
import { stashValuesFor } from '../api/stash/handlers.ts';
import { tenantEndpoints } from '../api/endpoints.ts';
import { makeCourier } from '../bus/delivery/courier.ts';
import { publish } from '../bus/publish/publish.ts';
import type { EngineContext } from '../contract/context.ts';
import { contractNumber, type Engine } from '../contract/engine.ts';
import type { DefinitionKey, TaskDefinition } from '../contract/wire.ts';
import { MillraceError } from '../errors.ts';
import { flowEngine } from '../flows/flow-engine.ts';
import { makeRouter, problemResponse } from '../http/router.ts';
import { cacheOf, readDefinitions } from '../jobs/task-definitions.ts';
import { packageVersion } from '../kernel/process/package-files.ts';
import { onClient, onPool } from '../kernel/sql.ts';
import { migrateWithin, pendingMigrations } from '../postgres/migrate.ts';
import { ownSchemaSource, type SchemaSource } from '../postgres/schema-source.ts';
import { acceptRuns, listOffers } from '../runs/accept.ts';
import { cancellations, claimRuns, renewLeases } from '../runs/claim.ts';
import { keepLogs } from '../runs/logs.ts';
import { pruneTenant } from '../scheduler/retention/prune.ts';
import { applyReports } from '../runs/report.ts';
import { makeScheduler } from '../scheduler/scheduler.ts';
import { rejectIncomplete } from './wholeness.ts';

export const engineVersion: string = packageVersion;

export const engine: Engine = {
  contract: contractNumber,
  version: engineVersion,
  pending: listPending,
  migrate: migrateTenant,
  scheduler: makeScheduler,
  fetch: serve,
  prune: pruneTenant,
  runs: {
    claim: (ctx, polls) => claimRuns(ctx, engineVersion, polls),
    report: (ctx, reports, polls) => applyReports(ctx, engineVersion, reports, polls),
    offers: listOffers,
    accept: (ctx, wishes) => acceptRuns(ctx, engineVersion, wishes),
    renew: renewLeases,
    cancellations,
    logs: keepLogs,
    definitions: readHeldDefinitions,
    stash: stashValuesFor,
  },
  bus: {
    publish,
    courier: (ctx) => makeCourier(ctx),
  },
  flows: flowEngine,
};

function readHeldDefinitions(
  { pool, tenant }: EngineContext,
  keys: readonly DefinitionKey[],
  worker?: string,
): Promise<TaskDefinition[]> {
  return readDefinitions(onPool(pool), { tenant: tenant.id, heldBy: worker }, keys, cacheOf(pool));
}

/** Cached, because every start of a scheduler needs it. */
let source: SchemaSource | undefined;

async function tenantSchema(): Promise<SchemaSource> {
  source ??= await ownSchemaSource('tenant');
  return source;
}

async function listPending(client: ClientBase): Promise<string[]> {
  const schema = await tenantSchema();
  const pending = await pendingMigrations(client, { ...schema, version: engineVersion });
  if (pending.length === 0) await rejectIncomplete(client, schema.functions?.names ?? []);
  return pending;
}

async function migrateTenant(client: ClientBase): Promise<string[]> {
  return migrateWithin(client, onClient(client), { ...(await tenantSchema()), version: engineVersion });
}

const handlers: ApiHandlers<typeof tenantEndpoints> = { ...apiHandlers, ...applyHandlers };

const route = makeRouter<typeof tenantEndpoints, ApiContext>(tenantEndpoints, handlers, (error, { ctx, request }) =>
  ctx.log.error({ err: error, method: request.method, path: loggedPath(request) }, 'request failed'),
);

/** Without the token of an answer link, which is a secret. */
function loggedPath({ url }: Request): string {
  return new URL(url).pathname.replace(/^(\/answers\/).+$/, '$1…');
}

async function serve(request: Request, ctx: EngineContext, caller: Parameters<Engine['fetch']>[2]): Promise<Response> {
  const url = new URL(request.url);
  const answer = await route(request, { ...ctx, db: onPool(ctx.pool) }, caller, url);
  if (answer) return answer;
  return problemResponse(new MillraceError('not_found', `nothing is served at ${url.pathname}`), () => {});
}
