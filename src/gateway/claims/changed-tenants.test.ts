/** The answers of an open gateway for a tenant that is changed by a session without Millrace's locks. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { textWith } from '../../../test/harness/expected.ts';
import { type Fleet, makeFleet, opened, writeSchedulerStatus, type TestTenant } from '../../../test/harness/fleet.ts';
import { type FreshDatabase, makeFreshDatabase } from '../../../test/harness/fresh-database.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { administer } from '../../../test/harness/postgres-server.ts';
import { until } from '../../../test/harness/until.ts';
import { engine, engineVersion } from '../../engine/engine.ts';
import { newId } from '../../kernel/id.ts';
import { type Log, silent } from '../../kernel/log.ts';
import { sql } from '../../kernel/sql.ts';
import { registerTenant } from '../../control/queries.ts';
import type { Loader } from '../../loader/loader.ts';
import { onDatabase } from '../../postgres/address.ts';
import { withClient } from '../../postgres/databases.ts';
import { ClaimDesk } from './claim-desk.ts';
import { HeartbeatTenants } from '../desks/heartbeat-tenants.ts';
import { BatchTurns } from './batch-turns.ts';

// the migrations of this release
const newer = {
  ...engine,
  version: '99.0.0',
  pending: async () => [],
  fetch: async () => new Response('of the newer one'),
};

let fleet: Fleet;
let a: TestTenant;
let key: string;
let bare: FreshDatabase;
beforeAll(async () => {
  fleet = await makeFleet(['a', 'neighbour']);
  [a] = fleet.tenants as [TestTenant];
  key = await makeTestGateway(fleet).key('root', null);
  bare = await makeFreshDatabase();
});
afterAll(async () => {
  await fleet.close();
  await bare.close();
});

const inTenant = (text: string) =>
  withClient(onDatabase(fleet.control.address, a.row.database), (client) => client.query(text));
const isOpen = (gateway: TestGateway): Promise<unknown> => expectStatus(gateway, 'GET', 200);

async function ask(gateway: TestGateway, method: string): Promise<{ status: number; text: string }> {
  const body = method === 'PUT' ? { name: 'shop' } : undefined;
  const answer = await gateway.fetch(method, '/t/a/api/projects', { authorization: `Bearer ${key}` }, body);
  return { status: answer.status, text: await answer.text() };
}

async function expectStatus(gateway: TestGateway, method: string, status: number, text = ''): Promise<void> {
  expect(await ask(gateway, method)).toEqual({ status, text: textWith(text) });
}

/** Runs the work while the tenant has no Millrace schema. */
async function withoutSchema(work: () => Promise<void>): Promise<void> {
  await inTenant('alter schema millrace rename to gone');
  try {
    await work();
  } finally {
    await inTenant('alter schema gone rename to millrace');
  }
}

describe('tenants whose schema was dropped', () => {
  it.each(['GET', 'PUT'])(
    'every %s answers that the tenant is not installed, until its schema is back',
    async (method) => {
      const gateway = makeTestGateway(fleet, fleet.newLoader());
      await isOpen(gateway);
      await withoutSchema(async () => {
        for (let i = 0; i < 3; i++) await expectStatus(gateway, method, 503, 'tenant a is not installed');
      });
      await until('it is back', async () => (await ask(gateway, 'GET')).status === 200 || undefined);
    },
  );

  it('reports for a dropped schema have no effect, and heartbeats fail with the reason', async () => {
    const gateway = makeTestGateway(fleet, fleet.newLoader());
    await isOpen(gateway);
    const report = { tenant: a.row.id, run: newId(), lease: 1, state: 'success', reason: null, exit_code: 0 } as const;
    await withoutSchema(async () => {
      expect(await gateway.context.reports.report([{ ...report, started_at: null }])).toEqual([]);
      const beat = { worker: newId(), incarnation: 1, holds: [] };
      await expect(gateway.context.desks.renewals.give(a.row.id, beat, 1_000)).rejects.toThrow('not installed');
      expect((await ask(gateway, 'GET')).status).toBe(503);
    });
  });

  it('a statement that fails for another reason does not close the tenant', async () => {
    const loader = fleet.newLoader();
    const open = await opened(loader, 'a');
    const failing = loader.use(a.row.id, ({ ctx }) => ctx.pool.query('select * from no_such_table'));
    await expect(failing).rejects.toThrow('no_such_table');
    expect(await opened(loader, 'a')).toBe(open);
  });
});

it('a tenant at another version is served by that engine once a call of the old one fails', async () => {
  const old = { ...engine, fetch: async () => new Response('', { status: 500 }) };
  const gateway = makeTestGateway(fleet, fleet.newLoader({ engines: [old, newer] }));
  await expectStatus(gateway, 'GET', 500);
  await inTenant(`update millrace.installation set version = '99.0.0'`);
  try {
    await until('it is looked at', async () => (await ask(gateway, 'GET')).text === 'of the newer one' || undefined);
  } finally {
    await inTenant(`update millrace.installation set version = '${engineVersion}'`);
  }
});

it('a tenant whose database stops accepting connections is unavailable, with the reason', async () => {
  const loader = fleet.newLoader();
  const gateway = makeTestGateway(fleet, loader);
  await opened(loader, 'a');
  const allow = (yes: boolean) =>
    administer(fleet.control.address, `alter database ${a.row.database} allow_connections ${yes}`);
  await allow(false);
  try {
    for (const method of ['GET', 'PUT', 'GET']) await expectStatus(gateway, method, 503, 'cannot be used: database');
  } finally {
    await allow(true);
  }
});

describe('claims of unavailable tenants', () => {
  /** A desk with frequent sweeps, its warnings, and the number of its sweeps. */
  function deskWith(loader: Loader): { desk: ClaimDesk; warnings: unknown[]; swept: () => number } {
    const warnings: unknown[] = [];
    const log: Log = { ...silent, warn: (fields: unknown) => void warnings.push(fields), child: () => silent };
    const { db: control } = fleet.control;
    const heartbeatTenants = new HeartbeatTenants(control, silent);
    let sweeps = 0;
    const sweeping = { times: { sweepMs: 20 }, onSwept: () => void sweeps++ };
    const options = { loader, control, heartbeatTenants, turns: new BatchTurns(), log, leaseMs: 30_000, ...sweeping };
    return { desk: new ClaimDesk(options), warnings, swept: () => sweeps };
  }

  it('an unavailable tenant is asked once for each hint, and nothing is logged', async () => {
    await Promise.all(fleet.tenants.map((tenant) => writeSchedulerStatus(fleet, tenant, { ready: false })));
    const row = { id: newId(), name: 'bare', database: bare.address.database };
    await registerTenant(fleet.control.db, { ...row, at: new Date() });
    await fleet.control.db.exec(sql`
      insert into launch (tenant_id, state, code, reason, changed_at)
      values (${row.id}, 'DISABLED', 'not_installed', 'not installed', now())`);
    // an earlier scheduler has left its last report
    await writeSchedulerStatus(fleet, { row: { ...row, desired: 'on' } }, { ready: true });
    const opened: string[] = [];
    const loader = fleet.newLoader({
      addressOf: ({ name, database }) => {
        opened.push(name);
        return onDatabase(fleet.control.address, database);
      },
    });
    const { desk, warnings, swept } = deskWith(loader);
    await desk.service.start();
    const stop = new AbortController();
    const lanes = { runtimes: ['none' as const], queues: ['default'] };
    const waiting = desk.claim(
      { worker: newId(), incarnation: 1, free: 1, wait_ms: 20_000, seen: {}, ...lanes },
      stop.signal,
    );
    desk.ready(row.id);
    await until('it was asked', () => opened.includes('bare') || undefined);
    const before = swept();
    await until('the desk has swept some times', () => swept() > before + 5 || undefined);
    expect(opened.filter((name) => name === 'bare')).toHaveLength(1);
    await fleet.control.db.exec(sql`delete from launch where tenant_id = ${row.id}`);
    await until('it is asked again', () => opened.filter((name) => name === 'bare').length > 1 || undefined);
    stop.abort();
    await waiting;
    await desk.service.stop();
    expect(warnings).toEqual([]);
  });
});
