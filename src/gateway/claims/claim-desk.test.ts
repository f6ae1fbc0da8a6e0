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
import { Servings } from '../desks/servings.ts';
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
    servings: new Servings(control, silent),
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
/** It has nothing, and is known to: a tenant whose scheduler is silent has its share of the places. */
const quiet = (tenant: TestTenant) => writeSchedulerStatus(fleet, tenant, { ready: false });
/** Until a claim has found nothing for whoever waits. */
const asked = (times: number) => until('it was asked', () => fleet.asked.length >= times || undefined);
const tenantsOf = (runs: readonly ClaimedRun[]): string[] => runs.map((run) => run.tenant_name);

/** A poll that ends while its claim is under way; answers how to let that go on. */
async function leftBehind(): Promise<() => void> {
  let letGo = (): void => {};
  fleet.gate = () => new Promise((resolve) => (letGo = resolve));
  const stop = new AbortController();
  const ended = poll({}, stop.signal);
  await asked(1);
  stop.abort();
  expect(await ended).toEqual([]);
  fleet.gate = async () => {};
  return letGo;
}

/** A poll that ends when whoever could have had something has answered that there is nothing. */
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

describe('a poll', () => {
  it('gets what is ready at once, no more than it has places for', async () => {
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

  it('gets credentials, unless all that it asks for executes nothing', async () => {
    await a.ready(2);
    expect((await poll({ runtimes: ['process', 'none'] }))[0]?.credential).toMatch(/^mrt_/);
    expect((await poll())[0]?.credential).toBe('');
  });

  it('waits for a wake-up and gets what is ready then', async () => {
    const waiting = poll();
    await asked(2);
    const [run] = await a.ready(1);
    desk.ready(a.row.id);
    expect((await waiting).map((each) => each.run)).toEqual([run]);
  });

  it('gets by the sweep what a lost wake-up was about', async () => {
    await desk.service.start();
    const waiting = poll();
    await asked(2);
    await b.ready(1);
    expect(tenantsOf(await waiting)).toEqual(['b']);
  });

  it('ends empty when its time is up or its signal aborts', async () => {
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

  it('with no free place gets no run and asks nobody: it waits for signals', async () => {
    await a.ready(1);
    const stop = new AbortController();
    const waiting = poll({ free: 0 }, stop.signal);
    desk.ready(a.row.id);
    expect(await poll()).toHaveLength(1);
    expect(fleet.asked.every((line) => line.endsWith(' 1'))).toBe(true);
    stop.abort();
    expect(await waiting).toEqual([]);
  });

  it('sees only the lanes of its runtimes and queues', async () => {
    await a.ready(1);
    expect(await poll({ runtimes: ['process'], wait_ms: 100 })).toEqual([]);
    expect(await poll({ queues: ['other'], wait_ms: 100 })).toEqual([]);
    expect(await poll({ queues: ['other', 'default'], runtimes: ['process', 'none'] })).toHaveLength(1);
  });

  it('gets nothing of a tenant whose desired state is off', async () => {
    await setDesired(fleet.control, a.row.id, 'off');
    await a.ready(1);
    desk.ready(a.row.id);
    expect(await poll({ wait_ms: 200 })).toEqual([]);
    await setDesired(fleet.control, a.row.id, 'on');
    const waiting = poll();
    desk.lookAgain();
    expect(await waiting).toHaveLength(1);
  });

  it('that ended while its claim was under way loses nothing: the worker’s next poll gets the runs at once', async () => {
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

  it('that ended while its claim was under way, and is followed by none, has its runs given back as if never handed out', async () => {
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

  it('whose claim is under way when the desk is closed has its runs given back then, and not when its lease is over', async () => {
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

  it('is answered by bells while the control database does not answer', async () => {
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

  it('of one kind does not get what was left for another of the same worker', async () => {
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

  it('for places and one for what takes none, of the same worker, are answered each with its own', async () => {
    const worker = newId();
    const placed = poll({ worker, runtimes: ['process'], wait_ms: 300 });
    const quick = poll({ worker, free: 100 });
    await a.ready(2);
    desk.ready(a.row.id);
    expect(await quick).toHaveLength(2);
    expect(await placed).toEqual([]);
  });

  it('of a worker’s earlier life does not get in the way of its new one', async () => {
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

describe('a poll for lanes that were found empty', () => {
  it('asks nobody until a bell rings', async () => {
    await foundEmpty();
    fleet.asked.length = 0;
    const waiting = poll();
    const [run] = await a.ready(1);
    expect(fleet.asked).toEqual([]);
    desk.ready(a.row.id);
    expect((await waiting).map((each) => each.run)).toEqual([run]);
  });

  it('asks when the bell rang while the claim that found nothing was under way', async () => {
    let letGo = (): void => {};
    const answered = new Promise<void>((resolve) => (letGo = resolve));
    fleet.gate = () => answered;
    const stop = new AbortController();
    const first = poll({}, stop.signal);
    await asked(1);
    stop.abort();
    await first;
    desk.ready(a.row.id);
    await a.ready(1);
    fleet.gate = async () => {};
    letGo();
    expect(await poll()).toHaveLength(1);
  });

  it('asks again where bells may have been missed', async () => {
    await foundEmpty();
    const waiting = poll();
    await a.ready(1);
    desk.lookAgain();
    expect(await waiting).toHaveLength(1);
  });

  it('asks for other lanes all the same', async () => {
    await foundEmpty({ runtimes: ['process'] });
    await a.ready(1);
    expect(await poll()).toHaveLength(1);
  });
});

describe('many polls', () => {
  it('share one claim per tenant', async () => {
    const polls = Array.from({ length: 20 }, () => poll({ free: 2 }));
    await until('all wait', () => fleet.asked.some((line) => line.endsWith(' 20')) || undefined);
    fleet.asked.length = 0;
    await a.ready(40);
    desk.ready(a.row.id);
    expect((await Promise.all(polls)).flat()).toHaveLength(40);
    expect(fleet.asked.filter((line) => line.startsWith('claim a')).length).toBeLessThanOrEqual(2);
  });

  it('are served in turn: no worker takes all while others are idle', async () => {
    const polls = Array.from({ length: 4 }, () => poll({ free: 10 }));
    await until('all wait', () => fleet.asked.some((line) => line.endsWith(' 4')) || undefined);
    await a.ready(8);
    desk.ready(a.row.id);
    expect((await Promise.all(polls)).map((runs) => runs.length)).toEqual([2, 2, 2, 2]);
  });

  it('of one worker with one place are served from each tenant in turn', async () => {
    await a.ready(6);
    await b.ready(6);
    const seen: string[] = [];
    for (let i = 0; i < 8; i++) {
      seen.push(...tenantsOf(await poll({ worker: 'c0ffee00-0000-7000-8000-000000000000' })));
      // a worker is never back at once
      await new Promise((resolve) => setImmediate(resolve));
    }
    // one that a busy machine makes late is given with the next poll, out of turn
    for (const name of ['a', 'b']) expect(seen.filter((tenant) => tenant === name).length).toBeOneOf([3, 4, 5]);
  });

  it('go on when one tenant’s claim fails', async () => {
    let failures = 0;
    fleet.gate = async (asked) => {
      if (asked.startsWith('claim a') && failures++ < 3) throw new Error('a is broken');
    };
    await b.ready(1);
    expect(tenantsOf(await poll())).toEqual(['b']);
  });

  it('go on when one tenant does not answer, and get its runs when it does', async () => {
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

  it('lose no ready run and get none twice, however they come and go', async () => {
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
