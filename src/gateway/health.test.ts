import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { insertHost } from '../../test/harness/tenant-calls.ts';
import { makeTestLife, type TestLife } from '../../test/harness/tenant-life.ts';
import { makeRouter } from '../http/router.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { type Reason, reasons } from '../launcher/reasons.ts';
import { insertTenant } from '../launcher/life/queries.ts';
import type { DatabaseFault } from '../postgres/vitals.ts';
import type { GatewayContext } from './context.ts';
import { gatewayEndpoints } from './endpoints.ts';
import { healthHandlers } from './health.ts';

let life: TestLife;
let isHealthy: boolean;
let speaksForTenant: boolean;
let fault: DatabaseFault | undefined;
let clockFault: string | undefined;
const id = newId();
beforeAll(async () => {
  life = await makeTestLife();
  await insertTenant(life.control, { id, name: 'default', database: 'default', ownHost: false, at: new Date() });
});
afterAll(() => life.close());
beforeEach(() => {
  isHealthy = false;
  speaksForTenant = true;
  fault = undefined;
  clockFault = undefined;
});

type Asked = 'GET /healthz' | 'GET /readyz';
const route = makeRouter<Pick<typeof gatewayEndpoints, Asked>, GatewayContext>(
  { 'GET /healthz': gatewayEndpoints['GET /healthz'], 'GET /readyz': gatewayEndpoints['GET /readyz'] },
  { 'GET /healthz': healthHandlers['GET /healthz'], 'GET /readyz': healthHandlers['GET /readyz'] },
  () => {},
);

async function healthz(path = '/healthz'): Promise<{ status: number | undefined; body: unknown }> {
  const ours = { ...life, databaseFault: () => fault, clockFault: () => clockFault };
  const context = {
    life: ours,
    control: life.control,
    healthy: async () => isHealthy,
    speaksForTenant,
  } as Partial<GatewayContext>;
  const response = await route(new Request(`http://here${path}`), context as GatewayContext, undefined);
  return { status: response?.status, body: await response?.json() };
}

async function launched(state: string, reason: Reason | null): Promise<void> {
  await life.control.exec(sql`
    insert into launch (tenant_id, state, code, reason, changed_at)
    values (${id}, ${state}, ${reason?.code ?? null}, ${reason?.text ?? null}, clock_timestamp())
    on conflict (tenant_id) do update set state = excluded.state, code = excluded.code, reason = excluded.reason`);
}

it('is well where its scheduler is', async () => {
  isHealthy = true;
  expect(await healthz()).toEqual({ status: 200, body: { status: 'ok' } });
});

it('says that a person has stopped it, by a code of its own', async () => {
  await launched('DISABLED', reasons.stoppedByUser);
  expect(await healthz()).toMatchObject({
    status: 503,
    body: {
      code: 'tenant_stopped',
      detail: 'the tenant default was stopped by a person; `millrace tenant start default` runs it again',
    },
  });
});

it('says why it does not run, and nothing to strangers of what its server said', async () => {
  const at = new Date('2030-01-01T00:00:00Z');
  await launched('DISABLED', reasons.unreachable('no pg_hba.conf entry for host "10.0.0.7"', at));
  const told = await healthz();
  expect(told).toMatchObject({ status: 503, body: { code: 'tenant_unavailable' } });
  expect(JSON.stringify(told)).toContain('does not run (unreachable until 2030-01-01T00:00:00.000Z)');
  expect(JSON.stringify(told)).not.toContain('10.0.0.7');
});

it('says of one that is said to be STARTED that it is not heard of', async () => {
  await launched('STARTED', null);
  const why = '`millrace tenant why default` says more';
  expect(await healthz()).toMatchObject({
    body: { detail: `the scheduler of the tenant default does not run (not heard of); ${why}` },
  });
  const host = await insertHost(life);
  await life.control.exec(sql`update launch set host_id = ${host}, ordered = true where tenant_id = ${id}`);
  expect(await healthz()).toMatchObject({
    body: { detail: 'the scheduler of the tenant default has not been heard of for ten seconds' },
  });
});

it('is not well while the database refuses writes, whatever the last known state is', async () => {
  isHealthy = true;
  expect(await healthz()).toEqual({ status: 200, body: { status: 'ok' } });
  const summary = 'the database refuses writes since 2026-06-01T12:03:00.000Z (its disk is full)';
  fault = { kind: 'no_writes', since: new Date('2026-06-01T12:03:00Z'), summary, detail: `${summary}: on 10.0.0.7` };
  const unwell = { status: 503, body: { code: 'database_unavailable', detail: summary } };
  expect(await healthz()).toMatchObject(unwell);
  expect(await healthz('/readyz')).toMatchObject(unwell);
});

it('warns of a clock that was set, and is well', async () => {
  isHealthy = true;
  clockFault = 'the clock was set back';
  expect(await healthz()).toEqual({ status: 200, body: { status: 'ok', warnings: ['the clock was set back'] } });
});

it('a process that speaks for itself alone is alive without its database, and says what is wrong', async () => {
  speaksForTenant = false;
  fault = { kind: 'silent', since: new Date(), summary: 'the database has not answered', detail: '' };
  expect(await healthz()).toEqual({ status: 200, body: { status: 'ok', warnings: ['the database has not answered'] } });
  expect(await healthz('/readyz')).toMatchObject({ status: 503 });
});
