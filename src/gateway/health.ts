/** Health, metrics, and the description of everything. */
import { MillraceError } from '../errors.ts';
import type { Handlers } from '../http/endpoint.ts';
import { docsPage } from '../http/docs-page.ts';
import { sql } from '../kernel/sql.ts';
import type { GatewayContext } from './context.ts';
import type { gatewayEndpoints } from './endpoints.ts';

type Keys = 'GET /healthz' | 'GET /readyz' | 'GET /metrics' | 'GET /openapi.json' | 'GET /docs';

export const healthHandlers: Handlers<Pick<typeof gatewayEndpoints, Keys>, GatewayContext> = {
  'GET /healthz': async (_, { healthy }) => {
    if (await healthy().catch(() => false)) return { status: 'ok' as const };
    throw new MillraceError(
      'tenant_unavailable',
      'the scheduler of the default tenant is not running, or has not said so for ten seconds',
    );
  },
  'GET /readyz': async (_, { control }) => {
    await control.exec(sql`select 1`);
    return { status: 'ok' as const };
  },
  // a tenant's key sees nothing of another's
  'GET /metrics': async ({ caller }, { metrics }) =>
    new Response(await metrics(caller?.tenant ?? null), {
      headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
    }),
  'GET /openapi.json': async (_, { openapi }) => openapi(),
  'GET /docs': async (_, { openapi }) => {
    const headers = {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
    };
    return new Response(docsPage(openapi()), { headers });
  },
};
