import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Fleet, makeFleet, type TestTenant } from '../../../test/harness/fleet.ts';
import { claim } from '../../../test/harness/pipeline.ts';
import { until } from '../../../test/harness/until.ts';
import type { Report } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { silent } from '../../kernel/log.ts';
import { ClaimDesk } from '../claims/claim-desk.ts';
import { ReportDesk } from './report-desk.ts';
import { HeartbeatTenants } from './heartbeat-tenants.ts';
import { BatchTurns } from '../claims/batch-turns.ts';

let fleet: Fleet;
let desk: ReportDesk;
let a: TestTenant;
let b: TestTenant;
beforeAll(async () => {
  fleet = await makeFleet(['a', 'b']);
  const [first, second] = fleet.tenants;
  if (first === undefined || second === undefined) throw new Error('no tenants');
  [a, b] = [first, second];
});
afterAll(() => fleet.close());
beforeEach(() => {
  const { loader, control } = fleet;
  const turns = new BatchTurns();
  const heartbeatTenants = new HeartbeatTenants(control.db, silent);
  const claims = new ClaimDesk({ loader, control: control.db, heartbeatTenants, turns, log: silent, leaseMs: 30_000 });
  desk = new ReportDesk({ loader, turns, claims });
});
afterEach(() => {
  fleet.gate = async () => {};
  fleet.asked.length = 0;
});

/** Reports of this many runs, which a worker holds. */
async function held(tenant: TestTenant, runs: number): Promise<Report[]> {
  await tenant.ready(runs);
  const claimed = await claim({ db: await tenant.db(), time: fleet.time }, 'none:default', { places: runs });
  return claimed.map((run) => ({
    tenant: tenant.row.id,
    run: run.id,
    lease: run.lease,
    state: 'success',
    reason: null,
    exit_code: 0,
    started_at: null,
  }));
}
const finished = async (tenant: TestTenant, reports: readonly Report[]): Promise<number> => {
  const ids = reports.map((report) => report.run);
  return (await (await tenant.db()).rows(sql`select 1 from run where id = any (${ids}::uuid[])`)).length;
};

describe('reports', () => {
  it('reports are applied before the answer, each to its tenant', async () => {
    const [ofA, ofB] = [await held(a, 3), await held(b, 2)];
    await desk.report([...ofA, ...ofB]);
    expect([await finished(a, ofA), await finished(b, ofB)]).toEqual([3, 2]);
  });

  it('many reports for an idle tenant are applied in two concurrent batches of neighbours', async () => {
    const reports = await held(a, 60);
    let letGo = (): void => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    fleet.gate = () => gate;
    const answer = desk.report(reports);
    await until('two are under way', () => fleet.asked.length === 2 || undefined);
    expect(fleet.asked).toEqual(['report a 30', 'report a 30']);
    letGo();
    await answer;
    expect(await finished(a, reports)).toBe(60);
  });

  it('reports that arrive during batches share the next one, with at most two batches at a time', async () => {
    const reports = await held(a, 40);
    let letGo = (): void => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    fleet.gate = () => gate;
    const answers = reports.map((report) => desk.report([report]));
    await until('two are under way', () => fleet.asked.length === 2 || undefined);
    letGo();
    await Promise.all(answers);
    expect(fleet.asked.slice(0, 2)).toEqual(['report a 1', 'report a 1']);
    expect(fleet.asked.length).toBeLessThanOrEqual(4);
    expect(await finished(a, reports)).toBe(40);
  });

  it('many reports while another tenant is at work are applied in smaller batches, one after the other', async () => {
    await desk.report(await held(b, 1));
    const reports = await held(a, 600);
    fleet.asked.length = 0;
    let underWay = 0;
    let most = 0;
    fleet.gate = async () => {
      most = Math.max(most, ++underWay);
      await sleep(10);
      underWay--;
    };
    await desk.report(reports);
    expect(fleet.asked).toEqual(['report a 250', 'report a 250', 'report a 100']);
    expect(most).toBe(1);
    expect(await finished(a, reports)).toBe(600);
  });

  it('failed reports are listed, so that the worker repeats them, and others are applied', async () => {
    const [ofA, ofB] = [await held(a, 1), await held(b, 1)];
    fleet.gate = async (asked) => {
      if (asked.startsWith('report a')) throw new Error('not now');
    };
    const failure = { tenant: a.row.id, code: 'tenant_unavailable', detail: 'not now' };
    expect(await desk.report([...ofA, ...ofB])).toEqual([failure]);
    expect([await finished(a, ofA), await finished(b, ofB)]).toEqual([0, 1]);
    fleet.gate = async () => {};
    expect(await desk.report(ofA)).toEqual([]);
    expect(await finished(a, ofA)).toBe(1);
  });

  it('only the late part of a batch is listed as failed', async () => {
    const [ofA, ofB] = [await held(a, 60), await held(b, 1)];
    let letGo = (): void => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    let parts = 0;
    fleet.gate = async (asked) => {
      if (asked.startsWith('report a') && ++parts === 2) await gate;
    };
    const failed = await desk.report([...ofA, ...ofB]);
    expect(failed).toMatchObject([{ tenant: a.row.id, code: 'tenant_unavailable', runs: { length: 30 } }]);
    const late = ofA.filter(({ run }) => failed[0]?.runs?.includes(run));
    expect([await finished(a, late), await finished(a, ofA), await finished(b, ofB)]).toEqual([0, 30, 1]);
    letGo();
    await until('what had begun is applied', async () => (await finished(a, ofA)) === 60 || undefined);
  });

  it('late, repeated and unknown reports are acknowledged (I3)', async () => {
    const reports = await held(a, 2);
    await desk.report([...reports, ...reports]);
    await desk.report(reports.map((report) => ({ ...report, state: 'failure' as const })));
    await desk.report([
      { ...(reports[0] as Report), run: newId() },
      { ...(reports[0] as Report), tenant: newId() },
    ]);
    expect(await finished(a, reports)).toBe(2);
  });

  it('reports in a batch with a rejected report are applied', async () => {
    const reports = await held(a, 5);
    const [first, second, third, fourth, fifth] = reports;
    // out of the range of an integer; and a NUL, which a PostgreSQL text cannot hold, is removed
    const bad = [
      { ...first, exit_code: 2 ** 40 },
      { ...second, reason: 'a\0b' },
    ] as Report[];
    let letGo = (): void => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    fleet.gate = () => gate;
    const before = [third, fourth].map((report) => desk.report([report as Report]));
    await until('both lanes are busy', () => fleet.asked.length === 2 || undefined);
    const shared = [...bad.map((report) => desk.report([report])), desk.report([fifth as Report])];
    letGo();
    await Promise.all(before);
    const refused = { tenant: a.row.id, run: first?.run, code: 'bad_request' };
    expect(await Promise.all(shared)).toMatchObject([[refused], [], []]);
    expect(await finished(a, reports)).toBe(4);
  });

  it('all reports of a message are applied except the rejected one', async () => {
    const reports = await held(a, 7);
    const bad = reports.map((report, i) => (i === 3 ? { ...report, exit_code: 2 ** 40 } : report));
    expect(await desk.report(bad)).toMatchObject([{ tenant: a.row.id, run: reports[3]?.run, code: 'bad_request' }]);
    expect(await finished(a, reports)).toBe(6);
  });

  it('reports of a hanging tenant delay no other tenant, and do not accumulate when they are repeated', async () => {
    const [ofA, ofB] = [await held(a, 1), await held(b, 1)];
    let letGo = (): void => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    fleet.gate = async (asked) => {
      if (asked.startsWith('report a')) await gate;
    };
    // sooner than for a tenant that has the batch to itself
    const soon = expect.stringMatching(/ (within (1000|\d{1,3}) ms|called in time)$/) as string;
    expect(await desk.report([...ofA, ...ofB])).toMatchObject([
      { tenant: a.row.id, code: 'tenant_unavailable', detail: soon },
    ]);
    expect(await finished(b, ofB)).toBe(1);
    const again = Array.from({ length: 5 }, () => desk.report([...ofA, ...ofB]));
    expect((await Promise.all(again)).flat()).toHaveLength(5);
    letGo();
    await until('what had begun is applied', async () => (await finished(a, ofA)) === 1 || undefined);
    // the two batches that had begun; the other reports were removed from the queue
    expect(fleet.asked.filter((line) => line.startsWith('report a'))).toHaveLength(2);
  });
});
