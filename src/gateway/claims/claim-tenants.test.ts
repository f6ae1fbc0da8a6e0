import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
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
import { ConnectionBudget } from '../../postgres/pool/connection-budget.ts';
import { ClaimDesk } from './claim-desk.ts';
import { Servings } from '../desks/servings.ts';
import { TenantPace } from './tenant-pace.ts';
import { BatchTurns } from './batch-turns.ts';

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

async function startDesk(loader: Loader = fleet.loader, turns = new BatchTurns()): Promise<ClaimDesk> {
  const { db: control } = fleet.control;
  const servings = new Servings(control, silent);
  const desk = new ClaimDesk({ loader, control, servings, turns, log: silent, leaseMs: 30_000 });
  desks.push(desk);
  await desk.service.start();
  return desk;
}

function poll(desk: ClaimDesk, more: Partial<ClaimRequest> = {}, signal?: AbortSignal): Promise<ClaimedRun[]> {
  const self = { worker: newId(), incarnation: 1, free: 1, wait_ms: 20_000, seen: {} };
  const lanes = { runtimes: ['none' as const], queues: ['default'] };
  return desk.claim({ ...self, ...lanes, ...more }, signal ?? new AbortController().signal);
}

const say = (tenant: TestTenant, ready: boolean, beatAt = new Date()) =>
  writeSchedulerStatus(fleet, tenant, { ready, beatAt });
const countOf = (runs: readonly ClaimedRun[], tenant: string): number =>
  runs.filter((run) => run.tenant_name === tenant).length;

/** A thousand tenants that only the control database knows; a loader that counts which it is asked to open. */
async function thousand(
  beatAt: Date | undefined,
  { url = 'postgresql://nobody@127.0.0.1:1/nothing', ...more }: { url?: string; budget?: ConnectionBudget } = {},
): Promise<{ loader: Loader; opened: string[] }> {
  await fleet.control.db.exec(sql`
    insert into tenant (id, name, database, created_at)
    select gen_random_uuid(), 'idle_' || n, 'idle_' || n, now() from generate_series(1, 1000) as n`);
  if (beatAt !== undefined)
    await fleet.control.db.exec(sql`
      insert into scheduler (tenant_id, id, host_id, order_no, phase, engine, ready, changed_at, beat_at)
      select id, gen_random_uuid(), gen_random_uuid(), 1, 'running', '0', false, now(), ${beatAt}
        from tenant where name like 'idle%'`);
  const opened: string[] = [];
  const loader = fleet.newLoader({
    ...more,
    addressOf: (row) => {
      opened.push(row.name);
      return addressOfUrl(url);
    },
  });
  return { loader, opened };
}

describe('which tenants are asked', () => {
  it('none of a thousand that are idle, however many workers wait', async () => {
    const { loader, opened } = await thousand(new Date(Date.now() + 60_000));
    await Promise.all([say(a, false), say(b, false)]);
    const desk = await startDesk(loader);
    const stop = new AbortController();
    const waiting = Array.from({ length: 8 }, () => poll(desk, {}, stop.signal));
    await sleep(2_500);
    stop.abort();
    await Promise.all(waiting);
    expect(opened).toEqual([]);
  });

  it('of a thousand whose schedulers are silent, a few at a time', async () => {
    const { loader, opened } = await thousand(undefined);
    const startedMs = performance.now();
    const desk = await startDesk(loader);
    const stop = new AbortController();
    const waiting = poll(desk, {}, stop.signal);
    await until('some are', () => new Set(opened).size > 30 || undefined);
    await sleep(1_500);
    stop.abort();
    await waiting;
    // 34 with each sweep, and when the poll began
    expect(new Set(opened).size).toBeLessThan(34 * (3 + (performance.now() - startedMs) / 1_000));
  });

  it('one of which nothing is known for one set of lanes after the other: it may have to be connected to first', async () => {
    await Promise.all([say(a, false), say(b, false)]);
    const desk = await startDesk();
    const stop = new AbortController();
    const polls = (['none', 'process'] as const).map((runtime) => poll(desk, { runtimes: [runtime] }, stop.signal));
    let go = (): void => {};
    fleet.gate = () => new Promise<void>((resolve) => (go = resolve));
    await until('both polls are there', async () => {
      desk.ready(a.row.id);
      return fleet.asked.length > 0 || undefined;
    });
    await sleep(200);
    expect(fleet.asked).toEqual(['claim a 1']);
    go();
    await until('the other lanes are asked about', () => fleet.asked.length > 1 || undefined);
    fleet.gate = async () => {};
    go();
    stop.abort();
    await Promise.all(polls);
  });

  it('of hundreds whose runs become ready at once, but which have to be connected to first, a few at a time', async () => {
    const sockets: Socket[] = [];
    const silentServer = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
    await once(silentServer, 'listening');
    const { port } = silentServer.address() as AddressInfo;
    const { loader, opened } = await thousand(new Date(Date.now() + 60_000), {
      url: `postgresql://nobody@127.0.0.1:${port}/nothing`,
      budget: new ConnectionBudget(100),
    });
    await Promise.all([say(a, false), say(b, false)]);
    const desk = await startDesk(loader);
    const stop = new AbortController();
    const waiting = poll(desk, { free: 1_000 }, stop.signal);
    const idle = await fleet.control.db.rows<{ id: string }>(sql`select id from tenant where name like 'idle%'`);
    for (const { id } of idle.slice(0, 300)) desk.ready(id);
    await until('some are', () => opened.length > 0 || undefined);
    await sleep(1_000);
    expect(new Set(opened).size).toBeLessThan(64);
    stop.abort();
    await waiting;
    silentServer.close();
    for (const socket of sockets) socket.destroy();
    await loader.closeAll();
  });

  it('those whose schedulers say that runs are ready, though no bell was heard, and though they are silent since', async () => {
    await Promise.all([say(a, false), say(b, false)]);
    const desk = await startDesk();
    const first = poll(desk);
    await a.ready(1);
    await say(a, true, new Date(0));
    expect((await first)[0]?.tenant_name).toBe('a');
  });

  it('none that is switched off, from a second later on, without being told', async () => {
    await Promise.all([say(a, false), say(b, false)]);
    const desk = await startDesk();
    const waiting = poll(desk);
    await setDesired(fleet.control, a.row.id, 'off');
    await b.ready(1);
    await say(b, true);
    // of which no bell was heard: the desk has looked anew
    expect((await waiting)[0]?.tenant_name).toBe('b');
    await a.ready(1);
    desk.ready(a.row.id);
    expect(await poll(desk, { wait_ms: 1_500 })).toEqual([]);
    await setDesired(fleet.control, a.row.id, 'on');
    expect(await poll(desk)).toHaveLength(1);
  });

  it('one that is newer than the list of tenants', async () => {
    await Promise.all([say(a, false), say(b, false)]);
    await fleet.control.db.exec(sql`update tenant set name = 'b2' where id = ${b.row.id}`);
    const desk = await startDesk();
    await fleet.loader.tenants();
    await fleet.control.db.exec(sql`update tenant set name = 'b' where id = ${b.row.id}`);
    const waiting = poll(desk);
    await b.ready(1);
    desk.ready(b.row.id);
    expect(await waiting).toHaveLength(1);
  });
});

describe('places', () => {
  it('are shared between tenants that have ready runs, and what one leaves the other gets', async () => {
    const desk = await startDesk();
    await Promise.all([a.ready(1_500), b.ready(2)]);
    const worker = newId();
    const answers: ClaimedRun[][] = [];
    const next = async (): Promise<void> => {
      answers.push(await poll(desk, { worker, free: 8 }));
      await sleep(5);
    };
    while (countOf(answers.flat(), 'b') < 2) await next();
    // of the first places neither got more than half, whoever answered first; and nobody had to wait for the flood's end
    expect(answers[0]?.length).toBeLessThanOrEqual(4);
    expect(countOf(answers.flat(), 'a')).toBeLessThan(1_500);
    while ((answers.at(-1)?.length ?? 0) <= 4) await next();
    expect(countOf(answers.flat(), 'a')).toBeLessThan(1_500);
  });

  it('of many workers are shared too, and none is given more than it asked for', async () => {
    const slow = (['overdue', 'late'] as const).map((name) => vi.spyOn(TenantPace.prototype, name));
    const isSlow = (): boolean => slow.some(({ mock }) => mock.calls.length > 0);
    const share = async (): Promise<ClaimedRun[]> => {
      for (const spy of slow) spy.mockClear();
      const desk = await startDesk();
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
      await desk.service.stop();
      expect(got).toHaveLength(24);
      return got;
    };
    let got = await share();
    // for one that answers late no places are kept, and it has fewer: on a busy machine either may be
    while (isSlow()) got = await share();
    expect(Math.abs(countOf(got, 'a') - countOf(got, 'b'))).toBeLessThanOrEqual(6);
    vi.restoreAllMocks();
  });

  it('are not kept for a tenant that stands still', async () => {
    const desk = await startDesk();
    let letGo = (): void => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    fleet.gate = async (asked) => {
      if (asked.startsWith('claim a')) await gate;
    };
    await Promise.all([a.ready(20), b.ready(20)]);
    const worker = newId();
    // the first may wait for it, and no later one
    for (let i = 0; i < 10; i++) {
      desk.ready(a.row.id);
      expect((await poll(desk, { worker }))[0]?.tenant_name).toBe('b');
    }
    expect(fleet.asked.filter((line) => line.startsWith('claim a'))).toHaveLength(1);
    letGo();
    expect((await poll(desk, { worker }))[0]?.tenant_name).toBe('a');
  });

  it('go to others while a tenant fails, which is asked ever more rarely', async () => {
    const desk = await startDesk();
    fleet.gate = async (asked) => {
      if (asked.startsWith('claim a')) throw new Error('a is broken');
    };
    await b.ready(40);
    const worker = newId();
    for (let i = 0; i < 40; i++) {
      desk.ready(a.row.id);
      expect((await poll(desk, { worker }))[0]?.tenant_name).toBe('b');
      await sleep(20);
    }
    expect(fleet.asked.filter((line) => line.startsWith('claim a')).length).toBeLessThan(8);
    fleet.gate = async () => {};
    await a.ready(1);
    expect((await poll(desk, { worker }))[0]?.tenant_name).toBe('a');
  });

  it('are left for those whose runs become ready while a large claim of another is under way', async () => {
    const desk = await startDesk();
    let letGo = (): void => {};
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    fleet.gate = async (asked) => {
      if (asked.startsWith('claim a')) await gate;
    };
    await Promise.all([say(a, false), say(b, false)]);
    const worker = newId();
    await a.ready(70);
    const first = poll(desk, { worker, free: 64 });
    desk.ready(a.row.id);
    await until('a is being asked', async () => fleet.asked.some((line) => line.startsWith('claim a')));
    await b.ready(1);
    desk.ready(b.row.id);
    expect((await first).map((run) => run.tenant_name)).toEqual(['b']);
    const second = poll(desk, { worker, free: 63 });
    letGo();
    // one of 32 was not asked for
    expect(countOf(await second, 'a')).toBe(62);
  });
});

describe('a tenant that is flooded while another is at work', () => {
  beforeEach(() => Promise.all([say(a, false), say(b, false)]));

  it('is asked for less at a time, by all workers together', async () => {
    const desk = await startDesk();
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

  it('is not asked while its reports have their turn, nor are places kept for it; and then it is', async () => {
    const turns = new BatchTurns();
    const desk = await startDesk(fleet.loader, turns);
    const worker = newId();
    await b.ready(1);
    desk.ready(b.row.id);
    expect(countOf(await poll(desk, { worker }), 'b')).toBe(1);
    await a.ready(200);
    desk.ready(a.row.id);
    expect(countOf(await poll(desk, { worker, free: 100 }), 'a')).toBeGreaterThan(25);
    fleet.asked.length = 0;
    let end = (): void => {};
    const reporting = turns.report(a.row.id, 100, () => new Promise<void>((resolve) => (end = resolve)));
    const begunMs = performance.now();
    desk.ready(a.row.id);
    const waiting = poll(desk, { worker, free: 40 });
    await b.ready(39);
    desk.ready(b.row.id);
    const got = await waiting;
    // a turn lasts half a second at most
    if (performance.now() - begunMs < 400) {
      expect(countOf(got, 'b')).toBe(39);
      expect(fleet.asked.filter((line) => line.startsWith('claim a'))).toEqual([]);
    }
    end();
    await reporting;
    await until('it is asked', async () => countOf(await poll(desk, { worker, free: 40 }), 'a') > 0 || undefined);
  });
});

describe('a worker that takes nothing of a tenant now', () => {
  // whose scheduler is silent is asked to be sure, and has a share of the places
  beforeEach(() => Promise.all([say(a, false), say(b, false)]));

  it('is given what others have, and what that tenant has when it asks for it again', async () => {
    const desk = await startDesk();
    const worker = newId();
    await a.ready(5);
    desk.ready(a.row.id);
    expect(await poll(desk, { worker, free: 2 })).toHaveLength(2);
    fleet.asked.length = 0;
    const without = poll(desk, { worker, free: 5, without: [a.row.id] });
    desk.ready(a.row.id);
    await sleep(50);
    await b.ready(1);
    desk.ready(b.row.id);
    expect((await without).map((run) => run.tenant_name)).toEqual(['b']);
    expect(fleet.asked.filter((line) => line.startsWith('claim a'))).toEqual([]);
    expect(countOf(await poll(desk, { worker, free: 10 }), 'a')).toBe(3);
  });

  it('changes its mind by another poll, which ends the one that waits', async () => {
    const desk = await startDesk();
    const worker = newId();
    await a.ready(2);
    desk.ready(a.row.id);
    expect(await poll(desk, { worker })).toHaveLength(1);
    const older = poll(desk, { worker, without: [a.row.id] });
    const other = poll(desk, { without: [a.row.id], wait_ms: 300 });
    await sleep(50);
    const newer = poll(desk, { worker });
    expect(await older).toEqual([]);
    expect(countOf(await newer, 'a')).toBe(1);
    expect(await other).toEqual([]);
  });
});
