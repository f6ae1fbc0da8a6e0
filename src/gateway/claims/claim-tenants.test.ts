/** How tenants share the polls of workers, on real databases. `choose.test.ts` tests which tenant is asked for how many runs. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Fleet,
  makeFleet,
  writeSchedulerStatus,
  setDesired,
  type TestTenant,
} from '../../../test/harness/fleet.ts';
import { until } from '../../../test/harness/until.ts';
import type { ClaimedRun, ClaimRequest } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { silent } from '../../kernel/log.ts';
import { sql } from '../../kernel/sql.ts';
import type { Loader } from '../../loader/loader.ts';
import { addressOfUrl } from '../../postgres/address.ts';
import { ClaimDesk } from './claim-desk.ts';
import { HeartbeatTenants } from '../desks/heartbeat-tenants.ts';
import { BatchTurns } from './batch-turns.ts';
import type { TenantTimes } from './tenant-record.ts';
import { TenantRecords } from './tenant-records.ts';

let fleet: Fleet;
let a: TestTenant;
let b: TestTenant;
const desks: ClaimDesk[] = [];
beforeAll(async () => {
  fleet = await makeFleet(['a', 'b']);
  [a, b] = fleet.tenants as [TestTenant, TestTenant];
});
afterAll(() => fleet.close());
afterEach(async () => {
  await Promise.all(desks.splice(0).map((desk) => desk.service.stop()));
  fleet.gate = async () => {};
  for (const tenant of fleet.tenants) await (await tenant.db()).exec(sql`delete from live`);
  const { db } = fleet.control;
  await db.exec(sql`delete from scheduler`);
  await db.exec(sql`delete from tenant where name like 'idle%'`);
  fleet.loader.forgetList();
  fleet.asked.length = 0;
});

interface TestDesk {
  readonly desk: ClaimDesk;
  readonly turns: BatchTurns;
  /** Returns after this many further sweeps, each of which began after the call. */
  readonly sweeps: (count: number) => Promise<void>;
}

/** No tenant is late, even if this machine is busy. */
const patient = { knownPatienceMs: 60_000, unknownPatienceMs: 60_000 };
const quick = { sweepMs: 20 };

async function startDesk({
  loader = fleet.loader,
  tenantTimes = {},
  times = {},
}: {
  loader?: Loader;
  tenantTimes?: Partial<TenantTimes>;
  times?: { sweepMs?: number };
} = {}): Promise<TestDesk> {
  const { db: control } = fleet.control;
  const heartbeatTenants = new HeartbeatTenants(control, silent);
  const turns = new BatchTurns(new TenantRecords(tenantTimes));
  let swept = 0;
  const onSwept = (): void => void swept++;
  const desk = new ClaimDesk({
    loader,
    control,
    heartbeatTenants,
    turns,
    log: silent,
    leaseMs: 30_000,
    times,
    onSwept,
  });
  desks.push(desk);
  await desk.service.start();
  const sweeps = async (count: number): Promise<void> => {
    const last = swept + count + 1;
    await until(`${count} sweeps`, () => swept >= last || undefined);
  };
  return { desk, turns, sweeps };
}

function poll(desk: ClaimDesk, more: Partial<ClaimRequest> = {}, signal?: AbortSignal): Promise<ClaimedRun[]> {
  const self = { worker: newId(), incarnation: 1, free: 1, wait_ms: 20_000, seen: {} };
  const lanes = { runtimes: ['none' as const], queues: ['default'] };
  return desk.claim({ ...self, ...lanes, ...more }, signal ?? new AbortController().signal);
}

/** Holds the answers of these tenants back until the returned function is called. */
function holdBack(line: string): () => void {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  fleet.gate = async (asked) => {
    if (asked.startsWith(line)) await opened;
  };
  return () => open();
}

const say = (tenant: TestTenant, ready: boolean, beatAt = new Date()) =>
  writeSchedulerStatus(fleet, tenant, { ready, beatAt });
const countOf = (runs: readonly ClaimedRun[], tenant: string): number =>
  runs.filter((run) => run.tenant_name === tenant).length;

const askedFor = (line: string): string[] => fleet.asked.filter((asked) => asked.startsWith(line));

/** A thousand tenants that exist only in the control database, and a loader that records which tenants it opens. */
async function makeThousand(beatAt: Date | undefined): Promise<{ loader: Loader; opened: Set<string> }> {
  await fleet.control.db.exec(sql`
    insert into tenant (id, name, database, created_at)
    select gen_random_uuid(), 'idle_' || n, 'idle_' || n, now() from generate_series(1, 1000) as n`);
  if (beatAt !== undefined)
    await fleet.control.db.exec(sql`
      insert into scheduler (tenant_id, id, host_id, order_no, phase, engine, ready, changed_at, beat_at)
      select id, gen_random_uuid(), gen_random_uuid(), 1, 'running', '0', false, now(), ${beatAt}
        from tenant where name like 'idle%'`);
  const opened = new Set<string>();
  const loader = fleet.newLoader({
    addressOf: (row) => {
      opened.add(row.name);
      return addressOfUrl('postgresql://nobody@127.0.0.1:1/nothing');
    },
  });
  return { loader, opened };
}

describe('tenants that are asked', () => {
  it('no idle tenant of a thousand is asked, with many waiting workers', async () => {
    const { loader, opened } = await makeThousand(new Date(Date.now() + 60_000));
    await Promise.all([say(a, false), say(b, false)]);
    const { desk, sweeps } = await startDesk({ loader, times: quick });
    const stop = new AbortController();
    const waiting = Array.from({ length: 8 }, () => poll(desk, {}, stop.signal));
    await sweeps(3);
    stop.abort();
    await Promise.all(waiting);
    expect([...opened]).toEqual([]);
  });

  it('each sweep asks a few of a thousand tenants with silent schedulers, until all were asked', async () => {
    const { loader, opened } = await makeThousand(undefined);
    const { desk, sweeps } = await startDesk({ loader, times: quick });
    const stop = new AbortController();
    const waiting = poll(desk, {}, stop.signal);
    await sweeps(1);
    const first = opened.size;
    // 34 in each sweep, and when the poll began
    expect(first).toBeLessThanOrEqual(34 * 4);
    await until('all were asked', () => opened.size >= 1_000 || undefined, 30_000);
    stop.abort();
    await waiting;
  });

  it('a tenant whose scheduler reported ready runs is asked, although the hint was lost and the scheduler is silent', async () => {
    await Promise.all([say(a, false), say(b, false)]);
    const { desk } = await startDesk({ times: quick });
    const first = poll(desk);
    await a.ready(1);
    await say(a, true, new Date(0));
    expect((await first)[0]?.tenant_name).toBe('a');
  });

  it('a tenant that was switched off before the last sweep is not asked, even without a notification', async () => {
    await Promise.all([say(a, false), say(b, false)]);
    const { desk, sweeps } = await startDesk({ times: quick });
    const waiting = poll(desk);
    await setDesired(fleet.control, a.row.id, 'off');
    await sweeps(1);
    await a.ready(1);
    desk.ready(a.row.id);
    await sweeps(2);
    expect(fleet.asked).toEqual([]);
    await setDesired(fleet.control, a.row.id, 'on');
    expect((await waiting)[0]?.tenant_name).toBe('a');
  });

  it('a tenant that is newer than the list of tenants is asked', async () => {
    await Promise.all([say(a, false), say(b, false)]);
    await fleet.control.db.exec(sql`update tenant set name = 'b2' where id = ${b.row.id}`);
    const { desk } = await startDesk();
    await fleet.loader.tenants();
    await fleet.control.db.exec(sql`update tenant set name = 'b' where id = ${b.row.id}`);
    const waiting = poll(desk);
    await b.ready(1);
    desk.ready(b.row.id);
    expect(await waiting).toHaveLength(1);
  });
});

describe('free places', () => {
  it('free places are shared between tenants with ready runs, and one gets what the other leaves', async () => {
    const { desk } = await startDesk({ tenantTimes: patient });
    await Promise.all([a.ready(30), b.ready(2)]);
    const worker = newId();
    // both are asked for half of the first places, and the first answer ends the poll
    const letGo = holdBack('claim a');
    expect((await poll(desk, { worker, free: 8 })).map((run) => run.tenant_name)).toEqual(['b', 'b']);
    letGo();
    const answers: ClaimedRun[][] = [];
    while (answers.flat().length < 30) answers.push(await poll(desk, { worker, free: 8 }));
    expect(answers[0]).toHaveLength(4);
    expect(Math.max(...answers.map((runs) => countOf(runs, 'a')))).toBe(8);
  });

  it('free places of many workers are shared equally, and none gets more runs than it asked for', async () => {
    const { desk } = await startDesk({ tenantTimes: patient });
    await Promise.all([a.ready(50), b.ready(50)]);
    const workers = Array.from({ length: 6 }, async () => {
      const worker = newId();
      const got: ClaimedRun[] = [];
      for (let free = 4; free > 0; free = 4 - got.length) {
        const runs = await poll(desk, { worker, free });
        expect(runs.length).toBeLessThanOrEqual(free);
        got.push(...runs);
      }
      return got;
    });
    const got = (await Promise.all(workers)).flat();
    expect(got).toHaveLength(24);
    expect(Math.abs(countOf(got, 'a') - countOf(got, 'b'))).toBeLessThanOrEqual(6);
  });

  it('no places are kept for a tenant that does not answer, and its runs go to the next poll once it does', async () => {
    const { desk } = await startDesk();
    const letGo = holdBack('claim a');
    await Promise.all([a.ready(20), b.ready(20)]);
    const worker = newId();
    for (let i = 0; i < 10; i++) {
      desk.ready(a.row.id);
      expect((await poll(desk, { worker }))[0]?.tenant_name).toBe('b');
    }
    expect(askedFor('claim a')).toHaveLength(1);
    letGo();
    expect((await poll(desk, { worker }))[0]?.tenant_name).toBe('a');
  });

  it('the places of a failing tenant go to others, and it is served again once it has recovered', async () => {
    const { desk } = await startDesk();
    fleet.gate = async (asked) => {
      if (asked.startsWith('claim a')) throw new Error('a is broken');
    };
    await b.ready(40);
    const worker = newId();
    for (let i = 0; i < 40; i++) {
      desk.ready(a.row.id);
      expect((await poll(desk, { worker }))[0]?.tenant_name).toBe('b');
    }
    expect(askedFor('claim a').length).toBeGreaterThan(0);
    fleet.gate = async () => {};
    await a.ready(1);
    expect((await poll(desk, { worker }))[0]?.tenant_name).toBe('a');
  });

  it('a tenant whose runs become ready during a large claim of another gets a place', async () => {
    const { desk } = await startDesk({ tenantTimes: patient });
    const letGo = holdBack('claim a');
    await Promise.all([say(a, false), say(b, false)]);
    const worker = newId();
    await a.ready(70);
    const first = poll(desk, { worker, free: 64 });
    desk.ready(a.row.id);
    await until('a is being asked', () => askedFor('claim a').length > 0 || undefined);
    await b.ready(1);
    desk.ready(b.row.id);
    expect((await first).map((run) => run.tenant_name)).toEqual(['b']);
    const second = poll(desk, { worker, free: 63 });
    letGo();
    // one place in 32 stayed free
    expect(countOf(await second, 'a')).toBe(62);
  });
});

describe('flooded tenants while others are at work', () => {
  beforeEach(() => Promise.all([say(a, false), say(b, false)]));
  /** No tenant is late, and a tenant that was at work stays so. */
  const tenantTimes = { ...patient, atWorkMs: 600_000 };

  it('a flooded tenant is asked for fewer runs at a time, by all workers together', async () => {
    const { desk } = await startDesk({ tenantTimes });
    await b.ready(1);
    desk.ready(b.row.id);
    expect(await poll(desk)).toHaveLength(1);
    await a.ready(600);
    const polls = [poll(desk, { free: 1 }), poll(desk, { free: 1_000 }), poll(desk, { free: 1_000 })];
    desk.ready(a.row.id);
    const [one, ...others] = (await Promise.all(polls)).map((runs) => countOf(runs, 'a'));
    expect(one).toBe(1);
    for (const count of others) expect(count).toBeOneOf([124, 125]);
  });

  it('a flooded tenant is asked, and gets places, only after the turn of its reports', async () => {
    const { desk, turns } = await startDesk({ tenantTimes });
    const worker = newId();
    await b.ready(1);
    desk.ready(b.row.id);
    // a place more than b fills: otherwise b would be asked again, beside a
    expect(countOf(await poll(desk, { worker, free: 2 }), 'b')).toBe(1);
    await a.ready(200);
    desk.ready(a.row.id);
    expect(countOf(await poll(desk, { worker, free: 100 }), 'a')).toBeGreaterThan(25);
    fleet.asked.length = 0;
    // as if a report had taken the turn
    const turn = { isTaken: true, reports: [], isWanted: false };
    turns.tenants.of(a.row.id).turn = turn;
    desk.ready(a.row.id);
    const waiting = poll(desk, { worker, free: 40 });
    await b.ready(39);
    desk.ready(b.row.id);
    expect(countOf(await waiting, 'b')).toBe(39);
    expect([askedFor('claim a'), turn.isWanted]).toEqual([[], true]);
    turns.tenants.of(a.row.id).turn = undefined;
    expect(countOf(await poll(desk, { worker, free: 40 }), 'a')).toBeGreaterThan(0);
  });
});

describe('workers that leave a tenant out', () => {
  // a tenant whose scheduler is silent is asked to be sure, and has a share of the places
  beforeEach(() => Promise.all([say(a, false), say(b, false)]));

  it('a worker gets runs of other tenants, and those of the left-out tenant once it asks for it again', async () => {
    const { desk } = await startDesk({ tenantTimes: patient });
    const worker = newId();
    await a.ready(5);
    desk.ready(a.row.id);
    expect(await poll(desk, { worker, free: 2 })).toHaveLength(2);
    fleet.asked.length = 0;
    const without = poll(desk, { worker, free: 5, without: [a.row.id] });
    desk.ready(a.row.id);
    await b.ready(1);
    desk.ready(b.row.id);
    expect((await without).map((run) => run.tenant_name)).toEqual(['b']);
    expect(askedFor('claim a')).toEqual([]);
    expect(countOf(await poll(desk, { worker, free: 10 }), 'a')).toBe(3);
  });

  it('another poll of the same worker ends the waiting one', async () => {
    const { desk } = await startDesk({ tenantTimes: patient });
    const worker = newId();
    await a.ready(2);
    desk.ready(a.row.id);
    expect(await poll(desk, { worker })).toHaveLength(1);
    const stop = new AbortController();
    const older = poll(desk, { worker, without: [a.row.id] });
    const other = poll(desk, { without: [a.row.id] }, stop.signal);
    const newer = poll(desk, { worker });
    expect(await older).toEqual([]);
    expect(countOf(await newer, 'a')).toBe(1);
    stop.abort();
    expect(await other).toEqual([]);
  });
});
