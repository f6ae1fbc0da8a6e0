import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { insertHost } from '../../../test/harness/tenant-calls.ts';
import { makeTestLife, type TestLife } from '../../../test/harness/tenant-life.ts';
import type { Caller } from '../../contract/roles.ts';
import { makeRouter } from '../../http/router.ts';
import { newId } from '../../kernel/id.ts';
import { silent } from '../../kernel/log.ts';
import { sql } from '../../kernel/sql.ts';
import { DisciplinedTime, formatStep, systemTime } from '../../kernel/time.ts';
import { formatCause, formatReason } from '../../control/format-reason.ts';
import { type Reason, reasonCodes, reasons, storeReason } from '../../control/reasons.ts';
import { insertTenant } from '../../tenants/queries.ts';
import type { DatabaseFault } from '../../postgres/database-health.ts';
import { OpenStreams } from '../routing/open-streams.ts';
import type { GatewayContext } from './context.ts';
import { gatewayEndpoints } from './endpoints.ts';
import { healthHandlers } from './health.ts';

let life: TestLife;
let isHealthy: boolean;
let speaksForTenant: boolean;
let fault: DatabaseFault | undefined;
let clockFault: string | undefined;
let streams: OpenStreams;
const id = newId();
beforeAll(async () => {
  life = await makeTestLife();
  await insertTenant(life.control, { id, name: 'default', database: 'default', ownHost: false, at: new Date() });
});
afterAll(() => life.close());
beforeEach(async () => {
  await life.control.exec(sql`delete from scheduler`);
  await life.control.exec(sql`delete from launch`);
  isHealthy = false;
  speaksForTenant = true;
  fault = undefined;
  clockFault = undefined;
  streams = new OpenStreams({ control: life.control, time: systemTime, log: silent });
});

type Asked = 'GET /healthz' | 'GET /readyz';
const route = makeRouter<Pick<typeof gatewayEndpoints, Asked>, GatewayContext>(
  { 'GET /healthz': gatewayEndpoints['GET /healthz'], 'GET /readyz': gatewayEndpoints['GET /readyz'] },
  { 'GET /healthz': healthHandlers['GET /healthz'], 'GET /readyz': healthHandlers['GET /readyz'] },
  () => {},
);

async function healthz(path = '/healthz', caller?: Caller): Promise<{ status: number | undefined; body: unknown }> {
  const ours = { ...life, databaseFault: () => fault, clockFault: () => clockFault };
  const context = {
    life: ours,
    control: life.control,
    healthy: async () => isHealthy,
    speaksForTenant,
    streams,
  } as Partial<GatewayContext>;
  const response = await route(new Request(`http://here${path}`), context as GatewayContext, caller);
  return { status: response?.status, body: await response?.json() };
}

async function launched(state: string, reason: Reason | null, retryAt: Date | null = null): Promise<void> {
  const desired = reason?.code === 'stopped_by_user' ? 'off' : 'on';
  const sentence = reason === null ? null : formatReason(reason);
  await life.control.exec(sql`update tenant set desired = ${desired} where id = ${id}`);
  await life.control.exec(sql`
    insert into launch (tenant_id, state, code, reason, why, retry_at, changed_at)
    values (${id}, ${state}, ${reason?.code ?? null}, ${sentence}, ${storeReason(reason, sentence)}::jsonb, ${retryAt},
            clock_timestamp())
    on conflict (tenant_id) do update
       set state = excluded.state, code = excluded.code, reason = excluded.reason, why = excluded.why,
           retry_at = excluded.retry_at`);
}

async function runs(trouble: Reason | null = null): Promise<void> {
  await launched('STARTED', null);
  const sentence = trouble === null ? null : formatCause(trouble);
  const host = await insertHost(life);
  await life.control.exec(sql`update launch set host_id = ${host}, ordered = true, order_no = 1`);
  await life.control.exec(sql`
    insert into scheduler (tenant_id, order_no, host_id, id, engine, phase, reason, why, changed_at, beat_at)
    values (${id}, 1, ${host}, ${newId()}, '1', 'running', ${sentence}, ${storeReason(trouble, sentence)}::jsonb,
            clock_timestamp(), clock_timestamp())`);
}

const root: Caller = { kind: 'key', role: 'root', tenantId: null, tenant: null, actor: 'key:root' };
const keyOf = (role: 'viewer' | 'worker', tenantId: string | null): Caller => ({ ...root, role, tenantId });
const since = '2026-06-01T12:03:00.000Z';
const failing = reasons.failing([{ doing: 'firing triggers', since, message: 'role "anna" at 10.0.0.7', hang: null }]);

it('healthz is ok while the scheduler of the default tenant runs', async () => {
  isHealthy = true;
  await runs();
  expect(await healthz()).toEqual({ status: 200, body: { status: 'ok' } });
});

it('healthz has a code of its own for a tenant that an operator stopped', async () => {
  await launched('DISABLED', reasons.stoppedByUser);
  expect(await healthz()).toMatchObject({
    status: 503,
    body: {
      code: 'tenant_stopped',
      detail: 'the tenant default was stopped by a person; `millrace tenant start default` runs it again',
    },
  });
});

it('healthz shows the cause and the next try to everyone, and the message of the server to keys of the tenant', async () => {
  const start = 'the scheduler of the tenant default does not run: ';
  const next = 'next try at 2030-01-01T00:00:00.000Z';
  await launched('DISABLED', failing, new Date('2030-01-01T00:00:00Z'));
  const plain = `${start}firing triggers has failed since ${since}; ${next}`;
  const full = `${start}${formatReason(failing)}; ${next}`;
  const detailFor = async (caller?: Caller) => (await healthz('/healthz', caller)).body;
  expect(await detailFor()).toMatchObject({ code: 'tenant_unavailable', detail: plain });
  expect(await detailFor(keyOf('worker', null))).toMatchObject({ detail: plain });
  expect(await detailFor(keyOf('viewer', newId()))).toMatchObject({ detail: plain });
  expect(await detailFor(keyOf('viewer', id))).toMatchObject({ detail: full });
  expect(await detailFor(root)).toMatchObject({ detail: full });
});

it.each(reasonCodes.filter((code) => code !== 'stopped_by_user'))(
  'healthz has a plain sentence for a tenant that does not run because of %s',
  async (code) => {
    await launched('DISABLED', reasons.error(code, 'role "anna" at 10.0.0.7'));
    const { status, body } = await healthz();
    expect([status, JSON.stringify(body)]).toEqual([503, expect.stringMatching(/does not run: [a-zA-Z]/)]);
    expect(JSON.stringify(body)).not.toContain('anna');
  },
);

it.each<readonly [Reason, string]>([
  [{ code: 'crashed', cause: 'read_only', data: {} }, 'its database is read-only'],
  [{ code: 'unreachable', cause: 'missing_right', data: { text: 'denied for anna' } }, 'its role lacks a right'],
])('healthz shows to everyone why a database cannot be written: %j', async (reason, cause) => {
  await launched('DISABLED', reason);
  const detail = `the scheduler of the tenant default does not run: ${cause}`;
  expect(await healthz()).toMatchObject({ body: { detail } });
});

it('healthz warns of failing parts of a running tenant', async () => {
  isHealthy = true;
  await runs(reasons.failing([{ doing: 'forgetting old runs', since: 'noon', message: 'at 10.0.0.7', hang: null }]));
  const warnings = ['forgetting old runs has failed since noon'];
  expect(await healthz()).toEqual({ status: 200, body: { status: 'ok', warnings } });
});

it('healthz reports a STARTED tenant whose host is silent', async () => {
  await launched('STARTED', null);
  expect(await healthz()).toMatchObject({
    body: { detail: expect.stringMatching(/does not run: not heard of: its host has left/) as unknown },
  });
  await runs();
  expect(await healthz()).toMatchObject({
    body: { detail: 'the scheduler of the tenant default has not been heard of for ten seconds' },
  });
});

it('healthz fails while the database rejects writes, whatever the last known state is', async () => {
  isHealthy = true;
  await runs();
  expect(await healthz()).toEqual({ status: 200, body: { status: 'ok' } });
  const summary = 'the database refuses writes since 2026-06-01T12:03:00.000Z (on a full disk)';
  fault = { kind: 'no_writes', since: new Date('2026-06-01T12:03:00Z'), summary, detail: `${summary}: on 10.0.0.7` };
  const unwell = { status: 503, body: { code: 'database_unavailable', detail: summary } };
  expect(await healthz()).toMatchObject(unwell);
  expect(await healthz('/readyz')).toMatchObject(unwell);
});

it('a gateway that is stopping is not ready, and opens no more streams', async () => {
  expect(await healthz('/readyz')).toMatchObject({ status: 200 });
  streams.service.quiet?.();
  expect(await healthz('/readyz')).toMatchObject({ status: 503, body: { code: 'stopping', detail: 'stopping' } });
  expect(() => streams.keep(new Response('events'), Buffer.from('key'))).toThrow('stopping');
});

it('healthz is ok after a clock step, with a warning', async () => {
  isHealthy = true;
  await runs();
  clockFault = 'the clock was set back';
  expect(await healthz()).toEqual({ status: 200, body: { status: 'ok', warnings: ['the clock was set back'] } });
});

it('healthz warns of a step of the clock of the server as it was measured', async () => {
  isHealthy = true;
  await runs();
  const time = new DisciplinedTime();
  const serverMs = Date.parse('2026-06-01T12:00:00Z');
  time.correct(serverMs, performance.now(), performance.now());
  time.now();
  time.correct(serverMs - 60_000, performance.now(), performance.now());
  clockFault = time.step && formatStep(time.step, time.heldMs);
  const warning = expect.stringMatching(
    /^the database server's clock was set back by 60 s at 2026-06-01T11:59:00.000Z: nothing fires until it has caught up, in \d+ s$/,
  ) as unknown;
  expect(await healthz()).toEqual({ status: 200, body: { status: 'ok', warnings: [warning] } });
});

it('a process that answers only for itself is healthy without its database, with a warning', async () => {
  speaksForTenant = false;
  fault = { kind: 'silent', since: new Date(), summary: 'the database has not answered', detail: '' };
  expect(await healthz()).toEqual({ status: 200, body: { status: 'ok', warnings: ['the database has not answered'] } });
  expect(await healthz('/readyz')).toMatchObject({ status: 503 });
});

it('a process that answers only for itself warns of a default tenant that does not run', async () => {
  speaksForTenant = false;
  await launched('DISABLED', failing);
  const plain =
    'the scheduler of the tenant default does not run: firing triggers has failed since 2026-06-01T12:03:00.000Z';
  expect(await healthz()).toEqual({ status: 200, body: { status: 'ok', warnings: [plain] } });
  await launched('DISABLED', reasons.stoppedByUser);
  expect(await healthz()).toEqual({ status: 200, body: { status: 'ok' } });
});
