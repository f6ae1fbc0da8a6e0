/** Messages of workers about several tenants, of which one hangs, is unreachable, or was deleted (I11). */
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { z } from 'zod';
import { type Fleet, makeFleet, type TestTenant } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { until } from '../../../test/harness/until.ts';
import type { Engine } from '../../contract/engine.ts';
import {
  type ClaimedRun,
  claimAnswer,
  definitionsAnswer,
  type HeartbeatAnswer,
  type HeldRun,
  heartbeatAnswer,
  logsAnswer,
  maxHolds,
  reportAnswer,
} from '../../contract/wire.ts';
import { engine } from '../../engine/engine.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { onDatabase } from '../../postgres/address.ts';
import { makeSecrets } from '../access/secrets.ts';

let fleet: Fleet;
let a: TestTenant;
let b: TestTenant;
let gateway: TestGateway;
let headers: Record<string, string>;
let locker: Client;
let worker: string;
let identity: { worker: string; incarnation: number };

beforeAll(async () => {
  fleet = await makeFleet(['a', 'b']);
  [a, b] = fleet.tenants as [TestTenant, TestTenant];
});
afterAll(() => fleet.close());
beforeEach(async () => {
  worker = newId();
  identity = { worker, incarnation: 1 };
  gateway = makeTestGateway(fleet);
  headers = { authorization: `Bearer ${await gateway.key('worker', null)}` };
  locker = new Client({ connectionString: onDatabase(fleet.control.address, b.row.database).url });
  await locker.connect();
});
afterEach(async () => {
  await locker.end();
  for (const tenant of fleet.tenants) await (await tenant.db()).exec(sql`delete from live`);
});

async function say<S extends z.ZodType>(
  path: string,
  body: object,
  schema: S,
): Promise<{ answer: z.infer<S>; ms: number }> {
  const startedMs = performance.now();
  const response = await gateway.fetch('POST', `/internal/${path}`, headers, body);
  expect(response.status).toBe(200);
  return { answer: schema.parse(await response.json()), ms: performance.now() - startedMs };
}

const hang = () => locker.query('begin; lock table millrace.live in access exclusive mode');

/** The worker holds one run of each tenant. */
async function holdBoth(): Promise<[ClaimedRun, ClaimedRun]> {
  await Promise.all([a.ready(1), b.ready(1)]);
  const held: ClaimedRun[] = [];
  while (held.length < 2) {
    const wish = { free: 2 - held.length, runtimes: ['none'], queues: ['default'], wait_ms: 5_000, seen: {} };
    const { answer } = await say('claim', { ...identity, ...wish }, claimAnswer);
    held.push(...answer.runs);
  }
  return held.toSorted((x, y) => x.tenant_name.localeCompare(y.tenant_name)) as [ClaimedRun, ClaimedRun];
}

const bare = ({ tenant, run, lease }: HeldRun): HeldRun => ({ tenant, run, lease });

function beat(holds: readonly HeldRun[], incarnation = 1): Promise<{ answer: HeartbeatAnswer; ms: number }> {
  const self = { worker, incarnation, name: 'box', addr: '', version: '1', places: 8 };
  const body = { ...self, runtimes: ['none'], queues: ['default'], holds: holds.map(bare), seen: {} };
  return say('heartbeat', body, heartbeatAnswer);
}

const report = (run: HeldRun) => {
  return { ...bare(run), state: 'success', reason: null, exit_code: 0, started_at: null };
};

it('a heartbeat renews the leases that it can within its time, and reports no run as lost that is only in doubt', async () => {
  const [ofA, ofB] = await holdBoth();
  await hang();
  const before = fleet.time.now();
  fleet.time.advance(5_000);
  const gone = { tenant: newId(), run: newId(), lease: 1 };
  const { answer, ms } = await beat([ofA, ofB, gone]);
  expect(answer.lost).toEqual([gone]);
  expect(ms).toBeLessThan(10_000);
  const row = await (await a.db()).one<{ until: Date }>(sql`select until from lease where worker_id = ${worker}`);
  expect(row.until.getTime()).toBeGreaterThan(before + 30_000);
});

it('runs of a tenant without the Millrace schema are lost, and their reports have no effect', async () => {
  const [ofA, ofB] = await holdBoth();
  const { loader } = gateway.context;
  const schema = (from: string, to: string) => locker.query(`alter schema ${from} rename to ${to}`);
  await schema('millrace', 'taken');
  try {
    await loader.close(b.row.id);
    expect((await beat([ofA, ofB])).answer.lost).toEqual([bare(ofB)]);
    const { answer } = await say('report', { ...identity, reports: [report(ofB)] }, reportAnswer);
    expect(answer).toEqual({ accepted: 1, failed: [] });
  } finally {
    await schema('taken', 'millrace');
    await loader.close(b.row.id);
  }
});

it('a heartbeat may list as many runs as a worker may hold', async () => {
  const tenant = newId();
  const holds = Array.from({ length: maxHolds }, () => ({ tenant, run: newId(), lease: 2 ** 31 - 1 }));
  expect((await beat(holds)).answer.lost).toHaveLength(maxHolds);
});

it('the first heartbeat of a new incarnation returns the runs of the earlier one at once, in all tenants', async () => {
  await beat([]);
  const [ofA, ofB] = await holdBoth();
  const kept = async () => {
    const row = await fleet.control.db.one<{ n: number }>(
      sql`select cardinality(tenants) as n from worker where id = ${worker}`,
    );
    return row.n === 2 || undefined;
  };
  await until('they are kept', kept);
  gateway = makeTestGateway(fleet);
  await beat([], 2);
  for (const [tenant, { run }] of [
    [a, ofA],
    [b, ofB],
  ] as const) {
    const row = await (await tenant.db()).one(sql`select worker_id from live where id = ${run}`);
    expect(row).toEqual({ worker_id: null });
  }
});

it('an invalidation does not end a poll, and is sent with the next runs', async () => {
  const { claims, signals } = gateway.context;
  const { epoch, newest } = (await beat([])).answer;
  const change = { tenant: a.row.id, kind: 'project', id: newId() } as const;
  const wish = { free: 1, runtimes: ['none'], queues: ['default'], wait_ms: 10_000, seen: { [epoch]: newest } };
  fleet.asked.length = 0;
  const waiting = say('claim', { ...identity, ...wish }, claimAnswer);
  await until('no tenant has a run for it', () => fleet.asked.length === 2 || undefined);
  signals.invalidate(change);
  const [run] = await a.ready(1);
  claims.ready(a.row.id);
  expect((await waiting).answer).toMatchObject({ runs: [{ run }], invalidate: [change], newest: newest + 1 });
});

const secretsOf = (run: HeldRun): Promise<Response> =>
  gateway.fetch('POST', '/internal/secrets', headers, { ...identity, ...bare(run), names: ['key'] });

it('a stash value that was encrypted with another key is rejected with the remedy', async () => {
  await a.readyWithSecret();
  const wish = { free: 1, runtimes: ['process'], queues: ['default'], wait_ms: 5_000, seen: {} };
  const [ofA] = (await say('claim', { ...identity, ...wish }, claimAnswer)).answer.runs;
  if (ofA === undefined) throw new Error('nothing was claimed');
  const db = await a.db();
  const sealed = makeSecrets(['the key of another installation'], Date.now).encrypt(Buffer.from('x'));
  await db.exec(sql`insert into global_stash (name, data) values ('key', ${sealed})`);
  const answer = await secretsOf(ofA);
  expect(await answer.json()).toMatchObject({
    status: 422,
    code: 'undecryptable',
    detail: expect.stringMatching(/^stash entry key: .* MILLRACE_SECRET_KEY, or store the value again$/) as string,
  });
});

it.each([
  { code: 'forbidden', status: 403, answered: 'forbidden' },
  { code: 'database_unavailable', status: 503, answered: 'tenant_unavailable' },
  { code: 'internal', status: 503, answered: 'tenant_unavailable' },
])(
  'the stash error $code of an engine of another build is answered as $answered',
  async ({ code, status, answered }) => {
    const [ofA] = await holdBoth();
    const foreign = Object.assign(new Error('so it says'), { name: 'MillraceError', code });
    const build: Engine = { ...engine, runs: { ...engine.runs, stash: () => Promise.reject(foreign) } };
    gateway = makeTestGateway(fleet, fleet.newLoader({ engines: [build] }));
    const answer = await secretsOf(ofA);
    expect(await answer.json()).toMatchObject({ status, code: answered, detail: 'so it says' });
  },
);

it('a report error of an engine of another build keeps its code', async () => {
  const [ofA] = await holdBoth();
  const foreign = Object.assign(new Error('so it says'), { name: 'MillraceError', code: 'database_unavailable' });
  const build: Engine = { ...engine, runs: { ...engine.runs, report: () => Promise.reject(foreign) } };
  gateway = makeTestGateway(fleet, fleet.newLoader({ engines: [build] }));
  const { answer } = await say('report', { ...identity, reports: [report(ofA)] }, reportAnswer);
  expect(answer.failed).toEqual([{ tenant: a.row.id, code: 'database_unavailable', detail: 'so it says' }]);
});

it('reports, output and definitions of a hanging tenant are listed as failed, and those of others are accepted', async () => {
  const [ofA, ofB] = await holdBoth();
  await locker.query('begin; lock table millrace.live, millrace.task in access exclusive mode');
  // sooner than for a tenant that has the batch to itself
  const soon = expect.stringMatching(/ (within (1000|\d{1,3}) ms|called in time)$/) as string;
  const named = [{ tenant: b.row.id, code: 'tenant_unavailable', detail: soon }];
  const chunk = { number: 0, stream: 'out', at: new Date().toISOString(), data: 'aGk=' };
  const logs = await say(
    'logs',
    {
      ...identity,
      chunks: [ofA, ofB].map((run) => ({ ...bare(run), ...chunk })),
    },
    logsAnswer,
  );
  expect(logs.answer.failed).toMatchObject(named);
  const items = [ofA, ofB].map(({ tenant, task, version }) => ({ tenant, task, version }));
  const definitions = await say('definitions', { ...identity, items }, definitionsAnswer);
  expect(definitions.answer).toMatchObject({ failed: named, definitions: [{ task: ofA.task }] });
  const reports = await say('report', { ...identity, reports: [ofA, ofB].map(report) }, reportAnswer);
  expect(reports.answer.failed).toMatchObject(named);
  const db = await a.db();
  expect(await db.rows(sql`select 1 from log where run_id = ${ofA.run}`)).toHaveLength(1);
  expect(await db.rows(sql`select 1 from run where id = ${ofA.run}`)).toHaveLength(1);
  await locker.query('rollback');
  const again = await say('report', { ...identity, reports: [report(ofB)] }, reportAnswer);
  expect(again.answer.failed).toEqual([]);
  expect(await (await b.db()).rows(sql`select 1 from run where id = ${ofB.run}`)).toHaveLength(1);
});
