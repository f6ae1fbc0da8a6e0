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
import { ClaimDesk } from './claim-desk.ts';
import { HeartbeatTenants } from '../desks/heartbeat-tenants.ts';
import { BatchTurns } from './batch-turns.ts';

let fleet: Fleet;
let desk: ClaimDesk;
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
  desk = newDesk();
});
afterEach(async () => {
  await desk.service.stop();
  fleet.gate = async () => {};
  for (const tenant of fleet.tenants) await (await tenant.db()).exec(sql`delete from live`);
  await fleet.control.db.exec(sql`delete from scheduler`);
  fleet.asked.length = 0;
});

function newDesk(leaseMs = 30_000): ClaimDesk {
  const { loader } = fleet;
  const { db: control } = fleet.control;
  return new ClaimDesk({
    loader,
    control,
    heartbeatTenants: new HeartbeatTenants(control, silent),
    turns: new BatchTurns(),
    log: silent,
    leaseMs,
  });
}

function poll(
  more: Partial<ClaimRequest> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<ClaimedRun[]> {
  const request = {
    worker: newId(),
    incarnation: 1,
    free: 1,
    runtimes: ['none' as const],
    queues: ['default'],
    wait_ms: 20_000,
    seen: {},
  };
  return desk.claim({ ...request, ...more }, signal);
}
/** The scheduler reports no ready runs. Otherwise the tenant would be asked to be sure, and get a share of the places. */
const quiet = (tenant: TestTenant) => writeSchedulerStatus(fleet, tenant, { ready: false });
/** Waits until this many claims have begun. */
const asked = (times: number) => until('it was asked', () => fleet.asked.length >= times || undefined);
const tenantsOf = (runs: readonly ClaimedRun[]): string[] => runs.map((run) => run.tenant_name);

/** A poll that ends while its claim is under way. Returns a function that lets the claim continue. */
async function leftBehind(): Promise<() => void> {
  let letGo: (() => void) | undefined;
  fleet.gate = () => new Promise((resolve) => (letGo = resolve));
  const stop = new AbortController();
  const ended = poll({}, stop.signal);
  const isHeld = await until('its answer is held back', () => letGo);
  stop.abort();
  expect(await ended).toEqual([]);
  fleet.gate = async () => {};
  return isHeld;
}

/** A poll that ends once all tenants have answered that they have no runs. */
async function foundEmpty(more: Partial<ClaimRequest> = {}): Promise<void> {
  let answers = 0;
  fleet.gate = async () => void answers++;
  const stop = new AbortController();
  const polled = poll(more, stop.signal);
  await until('both have answered', () => answers === 2 || undefined);
  stop.abort();
  expect(await polled).toEqual([]);
  fleet.gate = async () => {};
}

describe('polls', () => {
  it('a poll gets ready runs at once, at most as many as it has places', async () => {
    await quiet(b);
    await a.ready(5);
    const runs = await poll({ free: 3 });
    expect(runs).toHaveLength(3);
    expect(runs[0]).toMatchObject({
      tenant: a.row.id,
      tenant_name: 'a',
      lease: 1,
      attempt: 1,
      priority: 'high',
      params: {},
    });
    expect(await poll({ free: 3 })).toHaveLength(2);
  });

  it('a poll gets credentials, unless it asks only for runs of the kind none', async () => {
    await a.ready(2);
    expect((await poll({ runtimes: ['process', 'none'] }))[0]?.credential).toMatch(/^mrt_/);
    expect((await poll())[0]?.credential).toBe('');
  });

  it('a poll waits for a wake-up and gets the runs that are ready then', async () => {
    const waiting = poll();
    await asked(2);
    const [run] = await a.ready(1);
    desk.ready(a.row.id);
    expect((await waiting).map((each) => each.run)).toEqual([run]);
  });

  it('a sweep finds ready runs whose wake-up was lost', async () => {
    await desk.service.start();
    const waiting = poll();
    await asked(2);
    await b.ready(1);
    expect(tenantsOf(await waiting)).toEqual(['b']);
  });

  it('a poll ends without runs when its time is up or its signal aborts', async () => {
    expect(await poll({ wait_ms: 30 })).toEqual([]);
    expect(await poll({}, AbortSignal.abort())).toEqual([]);
    const stop = new AbortController();
    const waiting = poll({}, stop.signal);
    await asked(2);
    stop.abort();
    expect(await waiting).toEqual([]);
    await a.ready(1);
    desk.ready(a.row.id);
    expect(await poll()).toHaveLength(1);
  });

  it('a poll without free places claims no runs and waits for signals', async () => {
    await a.ready(1);
    const stop = new AbortController();
    const waiting = poll({ free: 0 }, stop.signal);
    desk.ready(a.row.id);
    expect(await poll()).toHaveLength(1);
    expect(fleet.asked.every((line) => line.endsWith(' 1'))).toBe(true);
    stop.abort();
    expect(await waiting).toEqual([]);
  });

  it('a poll gets only runs in the lanes of its runtimes and queues', async () => {
    await a.ready(1);
    expect(await poll({ runtimes: ['process'], wait_ms: 100 })).toEqual([]);
    expect(await poll({ queues: ['other'], wait_ms: 100 })).toEqual([]);
    expect(await poll({ queues: ['other', 'default'], runtimes: ['process', 'none'] })).toHaveLength(1);
  });

  it('a poll gets no runs of a tenant whose desired state is off', async () => {
    await setDesired(fleet.control, a.row.id, 'off');
    await a.ready(1);
    desk.ready(a.row.id);
    expect(await poll({ wait_ms: 200 })).toEqual([]);
    await setDesired(fleet.control, a.row.id, 'on');
    const waiting = poll();
    desk.lookAgain();
    expect(await waiting).toHaveLength(1);
  });

  it('runs claimed for a poll that has ended go to the worker’s next poll at once', async () => {
    await quiet(b);
    await a.ready(2);
    let letGo = (): void => {};
    fleet.gate = () => new Promise((resolve) => (letGo = resolve));
    const worker = newId();
    const stop = new AbortController();
    const first = poll({ worker, free: 2 }, stop.signal);
    await asked(1);
    stop.abort();
    expect(await first).toEqual([]);
    fleet.gate = async () => {};
    const second = poll({ worker, free: 2 });
    letGo();
    expect(await second).toHaveLength(2);
  });

  it('runs claimed for a poll that has ended are returned as if never handed out, if no other poll follows', async () => {
    desk = newDesk(1_000);
    await desk.service.start();
    const [run] = await a.ready(1);
    const letGo = await leftBehind();
    letGo();
    const db = await a.db();
    await until('it is given back', () =>
      db.maybeOne(sql`select 1 from live where id = ${run} and worker_id is null and lease = 1 and losses = 0`),
    );
  });

  it('runs of a claim that is under way when the desk stops are returned at once, not when their lease expires', async () => {
    const [run] = await a.ready(1);
    const letGo = await leftBehind();
    const closed = desk.service.stop();
    letGo();
    await closed;
    const db = await a.db();
    expect(await db.maybeOne(sql`select losses from live where id = ${run} and worker_id is null`)).toEqual({
      losses: 0,
    });
  });

  it('a poll is answered by hints while the control database does not answer', async () => {
    await fleet.control.db.transaction(async (tx) => {
      await tx.exec(sql`lock table scheduler in access exclusive mode`);
      const waiting = poll();
      await new Promise((resolve) => setTimeout(resolve, 50));
      await a.ready(1);
      desk.ready(a.row.id);
      expect(tenantsOf(await waiting)).toEqual(['a']);
      await b.ready(1);
      const late = poll();
      desk.ready(b.row.id);
      expect(tenantsOf(await late)).toEqual(['b']);
    });
  });

  it('a poll does not get runs that were left over for another kind of poll of the same worker', async () => {
    const worker = newId();
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    fleet.gate = () => gate;
    await quiet(b);
    await a.ready(3);
    const stop = new AbortController();
    const ended = poll({ worker, free: 3 }, stop.signal);
    await asked(1);
    stop.abort();
    expect(await ended).toEqual([]);
    const other = poll({ worker, runtimes: ['process'], wait_ms: 200 });
    open();
    expect(await other).toEqual([]);
    expect(await poll({ worker, free: 3 })).toHaveLength(3);
  });

  it('a poll for runs with places and one for runs without places of the same worker each get their own runs', async () => {
    const worker = newId();
    const placed = poll({ worker, runtimes: ['process'], wait_ms: 300 });
    const quick = poll({ worker, free: 100 });
    await a.ready(2);
    desk.ready(a.row.id);
    expect(await quick).toHaveLength(2);
    expect(await placed).toEqual([]);
  });

  it('a poll of a worker’s earlier incarnation does not disturb the new one', async () => {
    const worker = newId();
    const stop = new AbortController();
    const dead = poll({ worker, incarnation: 1, free: 5 }, stop.signal);
    await asked(2);
    await a.ready(3);
    const alive = poll({ worker, incarnation: 2, free: 5 });
    desk.ready(a.row.id);
    expect(await alive).toHaveLength(3);
    stop.abort();
    expect(await dead).toEqual([]);
  });
});

describe('polls for lanes without ready runs', () => {
  it('a poll asks no tenant until a hint arrives', async () => {
    await foundEmpty();
    fleet.asked.length = 0;
    const waiting = poll();
    const [run] = await a.ready(1);
    expect(fleet.asked).toEqual([]);
    desk.ready(a.row.id);
    expect((await waiting).map((each) => each.run)).toEqual([run]);
  });

  it('a poll asks again if a hint arrived during the claim that found nothing', async () => {
    let letGo = (): void => {};
    const answered = new Promise<void>((resolve) => (letGo = resolve));
    let hasLooked = false;
    fleet.gate = (line) => {
      hasLooked ||= line.startsWith('claim a');
      return answered;
    };
    const stop = new AbortController();
    const first = poll({}, stop.signal);
    // a claim that is still on its way would find the run, and keep it for the worker that has left
    await until('a claim has found nothing', () => hasLooked || undefined);
    stop.abort();
    await first;
    desk.ready(a.row.id);
    await a.ready(1);
    fleet.gate = async () => {};
    letGo();
    expect(await poll()).toHaveLength(1);
  });

  it('a poll asks again if hints may have been lost', async () => {
    await foundEmpty();
    const waiting = poll();
    await a.ready(1);
    desk.lookAgain();
    expect(await waiting).toHaveLength(1);
  });

  it('a poll for other lanes asks all the same', async () => {
    await foundEmpty({ runtimes: ['process'] });
    await a.ready(1);
    expect(await poll()).toHaveLength(1);
  });
});

describe('many polls', () => {
  it('polls share one claim per tenant', async () => {
    const polls = Array.from({ length: 20 }, () => poll({ free: 2 }));
    await until('all wait', () => fleet.asked.some((line) => line.endsWith(' 20')) || undefined);
    fleet.asked.length = 0;
    await a.ready(40);
    desk.ready(a.row.id);
    expect((await Promise.all(polls)).flat()).toHaveLength(40);
    expect(fleet.asked.filter((line) => line.startsWith('claim a')).length).toBeLessThanOrEqual(2);
  });

  it('polls are served in turn: no worker takes all runs while others are idle', async () => {
    const polls = Array.from({ length: 4 }, () => poll({ free: 10 }));
    await until('all wait', () => fleet.asked.some((line) => line.endsWith(' 4')) || undefined);
    await a.ready(8);
    desk.ready(a.row.id);
    expect((await Promise.all(polls)).map((runs) => runs.length)).toEqual([2, 2, 2, 2]);
  });

  it('polls of a worker with one place get runs of each tenant in turn', async () => {
    await a.ready(6);
    await b.ready(6);
    const seen: string[] = [];
    for (let i = 0; i < 8; i++) {
      seen.push(...tenantsOf(await poll({ worker: 'c0ffee00-0000-7000-8000-000000000000' })));
      // a real worker polls again only after a while
      await new Promise((resolve) => setImmediate(resolve));
    }
    // a run that is late because the machine is busy comes with the next poll, out of turn
    for (const name of ['a', 'b']) expect(seen.filter((tenant) => tenant === name).length).toBeOneOf([3, 4, 5]);
  });

  it('polls continue when the claim of one tenant fails', async () => {
    let failures = 0;
    fleet.gate = async (asked) => {
      if (asked.startsWith('claim a') && failures++ < 3) throw new Error('a is broken');
    };
    await b.ready(1);
    expect(tenantsOf(await poll())).toEqual(['b']);
  });

  it('polls continue when one tenant does not answer, and get its runs once it does', async () => {
    let answer = (): void => {};
    const answered = new Promise<void>((resolve) => (answer = resolve));
    fleet.gate = async (asked) => {
      if (asked.startsWith('claim a')) await answered;
    };
    await a.ready(1);
    await b.ready(1);
    const first = newId();
    expect(tenantsOf(await poll({ worker: first }))).toEqual(['b']);
    const next = poll({ worker: first });
    desk.ready(a.row.id);
    answer();
    expect(tenantsOf(await next)).toEqual(['a']);
  });

  it('polls that come and go lose no ready run and get none twice', async () => {
    await desk.service.start();
    const ready = [...(await a.ready(60)), ...(await b.ready(60))];
    const got: string[] = [];
    const worker = async (n: number): Promise<void> => {
      const id = newId();
      while (got.length < ready.length) {
        const stop = new AbortController();
        const waiting = poll({ worker: id, free: 1 + (n % 3), wait_ms: 200 }, stop.signal);
        if (Math.random() < 0.3) setImmediate(() => stop.abort());
        got.push(...(await waiting).map((run) => run.run));
      }
    };
    await Promise.all([1, 2, 3, 4].map(worker));
    expect(got.toSorted()).toEqual(ready.toSorted());
  });
});
