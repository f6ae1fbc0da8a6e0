/** Health, metrics, and the description of everything. */
import { defaultTenant } from '../contract/tenants.ts';
import { MillraceError } from '../errors.ts';
import type { Handlers } from '../http/endpoint.ts';
import { sql } from '../kernel/sql.ts';
import type { Life } from '../launcher/life/life.ts';
import type { GatewayContext } from './context.ts';
import type { gatewayEndpoints } from './endpoints.ts';
import { readCircumstances } from './standing.ts';
import { tenantState } from './tenant-queries.ts';
import { tenantView } from './tenant-views.ts';

type Keys = 'GET /healthz' | 'GET /readyz' | 'GET /metrics' | 'GET /openapi.json' | 'GET /docs';

export const healthHandlers: Handlers<Pick<typeof gatewayEndpoints, Keys>, GatewayContext> = {
  'GET /healthz': async (_, { healthy, speaksForTenant, life }) => {
    const fault = life.databaseFault();
    // a process that serves is alive, whatever its database does: to restart it would help nobody
    if (!speaksForTenant) return okWith([fault?.summary, life.clockFault?.()]);
    if (fault !== undefined) throw new MillraceError('database_unavailable', fault.summary);
    if (await healthy().catch(() => false)) return okWith([life.clockFault?.()]);
    throw await unwell(life);
  },
  'GET /readyz': async (_, { control, life }) => {
    const fault = life.databaseFault();
    if (fault !== undefined) throw new MillraceError('database_unavailable', fault.summary);
    await control.exec(sql`select 1`);
    return { status: 'ok' as const };
  },
  // a tenant's key sees nothing of another's
  'GET /metrics': async ({ caller }, { metrics }) =>
    new Response(await metrics(caller?.tenantId ?? null), {
      headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
    }),
  'GET /openapi.json': async ({ request }, { description }) => description.openapi(request),
  'GET /docs': async ({ request }, { description }) => description.docs(request),
};

function okWith(warnings: readonly (string | undefined)[]): { status: 'ok'; warnings?: string[] } {
  const said = warnings.filter((warning) => warning !== undefined);
  return said.length === 0 ? { status: 'ok' } : { status: 'ok', warnings: said };
}

/** Everybody may ask, so that a reason's code is told in words, and not what a server or an engine has said. */
async function unwell(life: Life): Promise<MillraceError> {
  const state = await readState(life).catch(() => undefined);
  if (state === undefined)
    return new MillraceError('tenant_unavailable', 'the control database does not say whether a scheduler runs');
  const { reason, reason_code: code } = state;
  if (code === 'stopped_by_user') {
    const how = `\`millrace tenant start ${defaultTenant}\` runs it again`;
    return new MillraceError('tenant_stopped', `the tenant ${defaultTenant} was stopped by a person; ${how}`);
  }
  const why =
    code === null
      ? 'has not been heard of for ten seconds'
      : `does not run (${reason?.split(': ', 1)[0]}); \`millrace tenant why ${defaultTenant}\` says more`;
  return new MillraceError('tenant_unavailable', `the scheduler of the tenant ${defaultTenant} ${why}`);
}

async function readState(life: Life) {
  const [row, circumstances] = await Promise.all([
    tenantState(life.control, { name: defaultTenant }),
    readCircumstances(life),
  ]);
  return row && tenantView(row, circumstances);
}
