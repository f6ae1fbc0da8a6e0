/**
 * Health, metrics, and the description of the API.
 *
 * Health needs no key. Callers without a key of the tenant get the cause in our own words; callers with a key also get the
 * message of the server or the engine.
 */
import type { Caller } from '../../contract/roles.ts';
import { defaultTenant } from '../../contract/tenants.ts';
import { MillraceError } from '../../errors.ts';
import type { Handlers } from '../../http/endpoint.ts';
import { readWarnings } from './standings.ts';
import type { Life } from '../../tenants/life.ts';
import type { DatabaseFault } from '../../postgres/database-health.ts';
import type { GatewayContext } from './context.ts';
import type { gatewayEndpoints } from './endpoints.ts';
import { type Causes, causesOf, readCircumstances } from '../tenants/standing.ts';
import { type TenantState, tenantState } from '../tenants/queries.ts';

type Keys = 'GET /healthz' | 'GET /readyz' | 'GET /metrics' | 'GET /openapi.json' | 'GET /docs';

export const healthHandlers: Handlers<Pick<typeof gatewayEndpoints, Keys>, GatewayContext> = {
  'GET /healthz': async ({ caller }, { healthy, speaksForTenant, life }) => {
    const fault = life.databaseFault();
    // a process that serves is alive, whatever the state of its database and tenants: a restart would not help
    if (!speaksForTenant) return okWith(await warningsOfApi(life, caller));
    if (fault !== undefined) throw unavailable(fault, caller);
    const [isHealthy, found] = await Promise.all([healthy().catch(() => false), findDefault(life, caller)]);
    if (isHealthy) return okWith(found?.words ?? []);
    throw unwell(found);
  },
  'GET /readyz': async ({ caller }, { control, life, streams }) => {
    if (streams.isQuiet) throw new MillraceError('stopping', 'stopping');
    const fault = life.databaseFault();
    if (fault !== undefined) throw unavailable(fault, caller);
    return okWith(await readWarnings(control));
  },
  // a tenant's key does not see metrics of other tenants
  'GET /metrics': async ({ caller }, { metrics }) =>
    new Response(await metrics(caller?.tenantId ?? null), {
      headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
    }),
  'GET /openapi.json': async ({ request }, { description }) => description.openapi(request),
  'GET /docs': async ({ request }, { description }) => description.docs(request),
};

function okWith(warnings: readonly string[]): { status: 'ok'; warnings?: string[] } {
  return warnings.length === 0 ? { status: 'ok' } : { status: 'ok', warnings: [...warnings] };
}

export function unavailable({ detail, summary }: DatabaseFault, caller: Caller | undefined): MillraceError {
  return new MillraceError('database_unavailable', isRoot(caller) ? detail : summary);
}

/** The warnings of an API process. A default tenant that an operator has switched off is no warning. */
async function warningsOfApi(life: Life, caller: Caller | undefined): Promise<readonly string[]> {
  const fault = life.databaseFault();
  if (fault !== undefined) return [isRoot(caller) ? fault.detail : fault.summary];
  const found = await findDefault(life, caller);
  if (found === undefined || found.tenant.desired === 'off') return [];
  return found.standing === 'runs' ? found.words : [notRunning(found)];
}

interface Found extends Causes {
  readonly tenant: TenantState;
  /** The causes in the wording that the caller may see. */
  readonly words: readonly string[];
}

/** Undefined: the tenant does not exist, or the control database does not answer. */
async function findDefault(life: Life, caller: Caller | undefined): Promise<Found | undefined> {
  try {
    const [tenant, circumstances] = await Promise.all([
      tenantState(life.control, { name: defaultTenant }),
      readCircumstances(life),
    ]);
    if (tenant === undefined) return undefined;
    const found = causesOf(tenant, circumstances);
    const mayKnow = isRoot(caller) || isReader(caller, tenant);
    return { ...found, tenant, words: found.causes.map(({ full, plain }) => (mayKnow ? full : plain)) };
  } catch {
    return undefined;
  }
}

function isRoot(caller: Caller | undefined): boolean {
  return caller !== undefined && caller.kind !== 'task' && caller.role === 'root';
}

function isReader(caller: Caller | undefined, { id }: TenantState): boolean {
  if (caller === undefined || caller.kind === 'task') return false;
  return (caller.role === 'viewer' || caller.role === 'operator') && caller.tenantId === id;
}

function unwell(found: Found | undefined): MillraceError {
  if (found === undefined)
    return new MillraceError('tenant_unavailable', 'the control database cannot tell whether a scheduler runs');
  if (found.tenant.desired === 'off') {
    const how = `\`millrace tenant start ${defaultTenant}\` runs it again`;
    return new MillraceError('tenant_stopped', `the tenant ${defaultTenant} was stopped by a person; ${how}`);
  }
  if (found.standing === 'runs')
    return new MillraceError(
      'tenant_unavailable',
      `the scheduler of the tenant ${defaultTenant} has not been heard of for ten seconds`,
    );
  return new MillraceError('tenant_unavailable', notRunning(found));
}

function notRunning({ words }: Found): string {
  return `the scheduler of the tenant ${defaultTenant} does not run: ${words.join('; ')}`;
}
