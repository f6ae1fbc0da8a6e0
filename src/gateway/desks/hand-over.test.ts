/** Runs that come with the answer to a report: which poll gets them, which tenant waits, and how places are released. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Fleet, makeFleet, type TestTenant, writeSchedulerStatus } from '../../../test/harness/fleet.ts';
import { until } from '../../../test/harness/until.ts';
import type { ClaimedRun, Failure } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { silent } from '../../kernel/log.ts';
import { sql } from '../../kernel/sql.ts';
import { BatchTurns } from '../claims/batch-turns.ts';
import { ClaimDesk } from '../claims/claim-desk.ts';
import { ReportDesk } from './report-desk.ts';
import { HeartbeatTenants } from './heartbeat-tenants.ts';

let fleet: Fleet;
let a: TestTenant;
let b: TestTenant;
let claims: ClaimDesk;
let reports: ReportDesk;
let self: { worker: string; incarnation: number; runtimes: ['none']; queues: string[]; seen: Record<string, number> };
beforeAll(async () => {
  fleet = await makeFleet(['a', 'b']);
  [a, b] = fleet.tenants as [TestTenant, TestTenant];
});
afterAll(() => fleet.close());
beforeEach(async () => {
  const { loader } = fleet;
  const { db: control } = fleet.control;
  const turns = new BatchTurns();
  claims = new ClaimDesk({
    loader,
    control,
    heartbeatTenants: new HeartbeatTenants(control, silent),
    turns,
    log: silent,
    leaseMs: 30_000,
  });
  reports = new ReportDesk({ loader, turns, claims });
  self = { worker: newId(), incarnation: 1, runtimes: ['none'], queues: ['default'], seen: {} };
  for (const tenant of fleet.tenants) await writeSchedulerStatus(fleet, tenant, { ready: false });
});
afterEach(async () => {
  await claims.service.stop();
  fleet.gate = async () => {};
  for (const tenant of fleet.tenants) await (await tenant.db()).exec(sql`delete from live`);
});

const poll = (free: number, signal = new AbortController().signal): Promise<ClaimedRun[]> =>
  claims.claim({ ...self, free, wait_ms: 20_000 }, signal);

/** The worker holds one run of this tenant, and `more` are ready. Without more, the desk knows that none is. */
async function holdOne(tenant: TestTenant, more: number): Promise<ClaimedRun> {
  await tenant.ready(1 + more);
  claims.ready(tenant.row.id);
  const [run] = await poll(more === 0 ? 2 : 1);
  if (run === undefined) throw new Error('no run');
  fleet.asked.length = 0;
  return run;
}

function apply({ tenant, run, lease }: ClaimedRun): Promise<Failure[]> {
  const ended = { state: 'success', reason: null, exit_code: null, started_at: null } as const;
  return reports.report([{ tenant, run, lease, ...ended, worker: self.worker }]);
}

async function countReady(tenant: TestTenant): Promise<number> {
  return (await (await tenant.db()).rows(sql`select 1 from live where worker_id is null`)).length;
}

/** The number of places that a tenant could borrow now. */
function countFree({ row }: TestTenant): number {
  const loan = claims.lend(row.id);
  const polls = loan.pollsOf(row.name);
  loan.settle(polls.map(() => []));
  return polls.reduce((sum, { free }) => sum + free, 0);
}

/** Reports the run with places for others. Returns the runs that came with the answer. */
async function reportWith(free: number, run: ClaimedRun): Promise<ClaimedRun[]> {
  const places = claims.open({ ...self, free });
  expect(await apply(run)).toEqual([]);
  return places.close();
}

it('the answer to a report contains the next run, without another claim', async () => {
  const run = await holdOne(a, 1);
  expect(await reportWith(1, run)).toMatchObject([{ tenant: a.row.id, lease: 1 }]);
  expect(fleet.asked).toEqual(['report a 1']);
});

it('the commit of a report also fills a waiting poll', async () => {
  const run = await holdOne(a, 0);
  const waiting = poll(5);
  await a.ready(2);
  await apply(run);
  expect(await waiting).toHaveLength(2);
  expect(fleet.asked).toEqual(['report a 1']);
});

it('a place goes to the tenant that has waited for it, not to the reporting one', async () => {
  const run = await holdOne(a, 0);
  await Promise.all([a.ready(1), b.ready(1)]);
  claims.ready(b.row.id);
  await reportWith(1, run);
  await until('b was asked', () => fleet.asked.includes('claim b 1') || undefined);
  expect(await countReady(a)).toBe(1);
});

it('a report without places claims no runs while no worker polls', async () => {
  const run = await holdOne(a, 1);
  await apply(run);
  expect(fleet.asked).toEqual(['report a 1']);
  claims.ready(a.row.id);
  expect(await poll(1)).toHaveLength(1);
});

it('places are free again if the reports could not be applied', async () => {
  const run = await holdOne(a, 0);
  fleet.gate = async (line) => {
    if (line.startsWith('report')) throw new Error('the database is away');
  };
  const places = claims.open({ ...self, free: 1 });
  expect(await apply(run)).toMatchObject([{ tenant: a.row.id }]);
  // the tenant that failed is asked once more
  await until('it has nothing', () => fleet.asked.includes('claim a 1') || undefined);
  expect(places.close()).toEqual([]);
});

it('places that are closed get no more runs', async () => {
  const places = claims.open({ ...self, free: 1 });
  expect([countFree(a), places.close(), countFree(a)]).toEqual([1, [], 0]);
});

it('runs of two tenants for the places of one report all arrive: the later ones come with the next poll', async () => {
  const run = await holdOne(a, 0);
  await Promise.all([a.ready(1), b.ready(1)]);
  claims.ready(b.row.id);
  const withAnswer = await reportWith(2, run);
  const withPoll = withAnswer.length === 2 ? [] : await poll(1);
  const tenants = new Set([...withAnswer, ...withPoll].map(({ tenant }) => tenant));
  expect(tenants).toEqual(new Set([a.row.id, b.row.id]));
});

it('a run for the places of a report that takes long goes to the poll of the worker', async () => {
  const run = await holdOne(a, 0);
  let letGo = (): void => {};
  fleet.gate = (line) => (line.startsWith('report') ? new Promise((resolve) => (letGo = resolve)) : Promise.resolve());
  const places = claims.open({ ...self, free: 1 });
  const applied = apply(run);
  await until('the report is under way', () => fleet.asked.includes('report a 1') || undefined);
  const waiting = poll(1);
  await b.ready(2);
  claims.ready(b.row.id);
  expect(await waiting).toMatchObject([{ tenant: b.row.id }]);
  claims.ready(b.row.id);
  expect(await poll(1)).toMatchObject([{ tenant: b.row.id }]);
  letGo();
  fleet.gate = async () => {};
  await applied;
  expect(places.close()).toEqual([]);
});
