/**
 * Names are swapped by plain SQL, without a notification. The runs of a worker, the key and the credential of a task still belong
 * to the tenant that they were created for, whatever its name is by now.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Fleet, makeFleet, type TestTenant } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import type { ClaimedRun, HeldRun } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

const worker = newId();
const identity = { worker, incarnation: 1 };
const lanes = { runtimes: ['none'], queues: ['default'] };
let fleet: Fleet;
let gateway: TestGateway;
let a: TestTenant;
let b: TestTenant;

beforeAll(async () => {
  fleet = await makeFleet(['a', 'b']);
  [a, b] = fleet.tenants as [TestTenant, TestTenant];
});
afterAll(() => fleet.close());
beforeEach(() => {
  gateway = makeTestGateway(fleet);
});
afterEach(async () => {
  await name('a', 'b');
  for (const tenant of fleet.tenants) await (await tenant.db()).exec(sql`delete from live`);
});

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });
const statusOf = async (path: string, headers: Record<string, string>): Promise<number> => {
  const response = await gateway.fetch('GET', path, headers);
  await response.body?.cancel();
  return response.status;
};

/** Sets the names of both tenants, and makes the loader forget its list of names. */
async function name(ofA: string, ofB: string): Promise<void> {
  await fleet.control.db.transaction(async (tx) => {
    await tx.exec(sql`update tenant set name = 'neither' where id = ${a.row.id}`);
    await tx.exec(sql`update tenant set name = ${ofB} where id = ${b.row.id}`);
    await tx.exec(sql`update tenant set name = ${ofA} where id = ${a.row.id}`);
    await tx.exec(sql`delete from former_name where name in (${ofA}, ${ofB})`);
  });
  fleet.loader.forgetList();
}

const swap = (): Promise<void> => name('b', 'a');

let workerKey: string | undefined;

async function say(path: string, body: object): Promise<Record<string, unknown>> {
  workerKey ??= await gateway.key('worker', null);
  const headers = bearer(workerKey);
  const response = await gateway.fetch('POST', `/internal/${path}`, headers, { ...identity, ...body });
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, unknown>;
}

async function claimed(): Promise<ClaimedRun> {
  await a.ready(1);
  const { runs } = await say('claim', { ...lanes, free: 1, wait_ms: 5_000, seen: {} });
  return (runs as ClaimedRun[])[0] as ClaimedRun;
}

it('messages about a run go to the tenant that handed it out, even if another has its name', async () => {
  const { tenant, tenant_name: called, run, lease, task, version } = await claimed();
  expect([tenant, called]).toEqual([a.row.id, 'a']);
  // as in a copied database: the other tenant has the same run under the same lease
  await copyRun(run);
  await swap();
  const held: HeldRun = { tenant, run, lease };
  const self = { name: 'box', addr: '', version: '1', places: 8 };
  expect(await say('heartbeat', { ...self, ...lanes, holds: [held], seen: {} })).toMatchObject({ lost: [] });
  expect(await say('definitions', { items: [{ tenant, task, version }] })).toMatchObject({
    definitions: [{ tenant, task }],
    failed: [],
  });
  const chunk = { ...held, number: 0, stream: 'out', at: new Date().toISOString(), data: 'aGk=' };
  expect(await say('logs', { chunks: [chunk] })).toMatchObject({ failed: [] });
  const report = { ...held, state: 'success', reason: null, exit_code: 0, started_at: null };
  expect(await say('report', { reports: [report] })).toMatchObject({ failed: [] });
  const db = await a.db();
  expect(await db.rows(sql`select state from run where id = ${run}`)).toEqual([{ state: 'success' }]);
  expect(await db.rows(sql`select 1 from log where run_id = ${run}`)).toHaveLength(1);
  const other = await b.db();
  expect(await other.rows(sql`select worker_id from live where id = ${run}`)).toEqual([{ worker_id: worker }]);
  expect(await other.rows(sql`select 1 from log where run_id = ${run}`)).toEqual([]);
});

/** Copies the run into b, where it belongs to a task of b. */
async function copyRun(run: string): Promise<void> {
  const [made = ''] = await b.ready(1);
  const db = await b.db();
  await db.exec(sql`update live set id = ${run} where id = ${made}`);
  const poll = { worker, incarnation: 1, free: 1, lanes: ['none:default'] };
  await fleet.loader.use(b.row.id, ({ engine, ctx }) => engine.runs.claim(ctx, [poll]));
}

it('a cached key or session gives access to its tenant under the new name, and not to the one with the old name', async () => {
  const key = await gateway.key('viewer', 'a');
  for (const headers of [bearer(key), { cookie: await gateway.session(key) }]) {
    expect(await statusOf('/t/a/api/projects', headers)).toBe(200);
    await swap();
    expect(await statusOf('/t/a/api/projects', headers)).toBe(403);
    expect(await statusOf('/t/a/api/explain/tenant/a', headers)).toBe(403);
    expect(await statusOf('/api/explain/tenant/a', headers)).toBe(403);
    expect(await statusOf('/t/b/api/projects', headers)).toBe(200);
    expect(await statusOf('/api/explain/tenant/b', headers)).toBe(200);
    await name('a', 'b');
  }
});

it('the credential of a task gives access to its tenant by the new and the old name, but not to another tenant with the old name', async () => {
  const headers = bearer(gateway.secrets.signRun({ tenant: a.row.id, run: newId(), lease: 1 }));
  await fleet.control.db.exec(sql`update tenant set name = 'new' where id = ${a.row.id}`);
  for (const path of ['/t/a/api/me', '/t/new/api/me']) {
    const response = await gateway.fetch('GET', path, headers);
    expect([path, await response.json()]).toMatchObject([path, { role: 'task', tenant: 'new' }]);
  }
  await swap();
  const refused = await gateway.fetch('GET', '/t/a/api/me', headers);
  expect(await refused.json()).toMatchObject({ status: 403, detail: 'this credential is for another tenant than a' });
  expect(await statusOf('/t/b/api/me', headers)).toBe(200);
});
