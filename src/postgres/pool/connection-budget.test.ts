import { type AddressInfo, createServer } from 'node:net';
import type { Pool } from 'pg';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type FreshDatabase, makeFreshDatabase } from '../../../test/harness/fresh-database.ts';
import { until } from '../../../test/harness/until.ts';
import { addressOfUrl } from '../address.ts';
import { ConnectionBudget } from './connection-budget.ts';
import { openPool } from './pool.ts';

let database: FreshDatabase;
const pools: Pool[] = [];
beforeAll(async () => {
  database = await makeFreshDatabase();
});
afterAll(() => database.close());
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
});

function open(
  budget: ConnectionBudget,
  owner: string,
  address = database.address,
  onOpen: () => Promise<void> = async () => {},
): Pool {
  const rest = { schema: 'millrace', max: 5, allowPooler: false, onOpen, onError: () => {} } as const;
  const pool = openPool({ address, application: owner, budget, ...rest });
  pools.push(pool);
  return pool;
}

const order = (budget: ConnectionBudget, owners: readonly string[]): { admitted: string[] } => {
  const admitted: string[] = [];
  for (const owner of owners) {
    void budget.enter(owner).then((opened) => {
      admitted.push(owner);
      opened();
    });
  }
  return { admitted };
};

const enter = async (budget: ConnectionBudget, owner: string): Promise<void> => (await budget.enter(owner))();

it('lets in as many as there may be, then whoever has fewest as others leave', async () => {
  const budget = new ConnectionBudget(3);
  await Promise.all(['a', 'a', 'b'].map((owner) => enter(budget, owner)));
  const { admitted } = order(budget, ['a', 'b', 'c']);
  for (const owner of ['b', 'a', 'a']) {
    budget.leave(owner);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(admitted).toEqual(['b', 'c', 'a']);
  expect(budget.total).toBe(3);
});

it('lets in a few at a time, and others as soon as those have opened theirs, or take too long for it', async () => {
  const budget = new ConnectionBudget(1_000);
  const opened: (() => void)[] = [];
  for (let i = 0; i < 500; i++) void budget.enter(`${i}`).then((open) => opened.push(open));
  const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  await tick();
  const few = opened.length;
  expect([few >= 4, few < 500]).toEqual([true, true]);
  opened.shift()?.();
  await tick();
  expect([opened.length, budget.total]).toEqual([few, few + 1]);
  await until('nobody calls back, and more are let in', () => opened.length > few + 4 || undefined);
  while (budget.total < 500) {
    for (const done of opened.splice(0)) done();
    await tick();
  }
});

it('a connection counts as being opened until it has been set up', async () => {
  const budget = new ConnectionBudget(1_000);
  let letThrough = (): void => {};
  const held = new Promise<void>((resolve) => (letThrough = resolve));
  let settingUp = 0;
  const onOpen = async (): Promise<void> => {
    settingUp++;
    await held;
  };
  const many = Array.from({ length: 20 }, (_, i) => open(budget, `${i}`, database.address, onOpen));
  const asked = many.map((pool) => pool.query('select 1'));
  await until('some are being set up', () => settingUp >= 4 || undefined);
  expect([budget.isBusy, settingUp < 20]).toEqual([true, true]);
  letThrough();
  await Promise.all(asked);
  expect([budget.isBusy, settingUp]).toEqual([false, 20]);
});

it('waits for a while only, and then says what is the matter', async () => {
  const budget = new ConnectionBudget(1);
  await budget.enter('a');
  await expect(budget.enter('b', 20)).rejects.toMatchObject({
    code: 'database_unavailable',
    message: expect.stringContaining('1 connections') as unknown,
  });
  budget.leave('a');
  await budget.enter('b', 20);
  expect(budget.total).toBe(1);
});

it('many pools share it: idle connections of one are closed when another needs one', async () => {
  const budget = new ConnectionBudget(3);
  const [one, two] = [open(budget, 'one'), open(budget, 'two')];
  await Promise.all([1, 2, 3].map(() => one.query('select pg_sleep(0.05)')));
  expect([one.idleCount, budget.total]).toEqual([3, 3]);
  await Promise.all([1, 2].map(() => two.query('select pg_sleep(0.05)')));
  expect(budget.total).toBeLessThanOrEqual(3);
  expect(one.idleCount).toBeLessThan(3);
});

it('for one that waits one idle connection is closed, however long it takes to end', async () => {
  const budget = new ConnectionBudget(6);
  const idle = [open(budget, 'one'), open(budget, 'two')];
  await Promise.all(idle.flatMap((pool) => [1, 2, 3].map(() => pool.query('select pg_sleep(0.05)'))));
  let removed = 0;
  for (const pool of idle) pool.on('remove', () => removed++);
  await open(budget, 'three').query('select 1');
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect([removed, idle.reduce((sum, pool) => sum + pool.idleCount, 0)]).toEqual([1, 5]);
});

it('learns how long it takes to open one from those that were opened, and rests for some times as long', async () => {
  const budget = new ConnectionBudget(10);
  const before = budget.openMs;
  const slowly = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 60));
  const failing = budget.opening(() => slowly().then(() => Promise.reject(new Error('it is locked'))));
  await expect(failing).rejects.toThrow('locked');
  expect(budget.openMs).toBe(before);
  await budget.opening(slowly);
  expect(budget.openMs).toBeGreaterThan(50);
  expect(budget.restMs).toBeGreaterThan(150);
});

it('a pool that waits gets the connection that another gives back', async () => {
  const budget = new ConnectionBudget(1);
  const [one, two] = [open(budget, 'one'), open(budget, 'two')];
  const busy = await one.connect();
  const waiting = two.query('select 1 as n');
  await until('it waits', () => two.totalCount === 1 || undefined);
  busy.release();
  expect((await waiting).rows).toEqual([{ n: 1 }]);
});

it('never more are open than there may be, and all are given back in the end', async () => {
  const budget = new ConnectionBudget(4);
  const many = Array.from({ length: 8 }, (_, i) => open(budget, `pool ${i}`));
  let most = 0;
  const watching = setInterval(() => (most = Math.max(most, budget.total)), 1);
  await Promise.all(many.flatMap((pool) => Array.from({ length: 10 }, () => pool.query('select pg_sleep(0.002)'))));
  clearInterval(watching);
  expect(most).toBeLessThanOrEqual(4);
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
  await until('nothing is open', () => budget.total === 0 || undefined);
});

it('a connection that fails, or that its server ends, leaves', async () => {
  const budget = new ConnectionBudget(2);
  const nowhere = open(budget, 'nowhere', addressOfUrl('postgresql://nobody@127.0.0.1:1/nothing'));
  await expect(nowhere.query('select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  expect(budget.total).toBe(0);
  const pool = open(budget, 'pool');
  await pool.query('select pg_terminate_backend(pg_backend_pid())').catch(() => {});
  await until('it has left', () => budget.total === 0 || undefined);
  expect((await pool.query('select 1 as n')).rows).toEqual([{ n: 1 }]);
});

/** Takes every connection, and ends it in the same packet, as a server does that is stopped just then. */
async function startLeavingServer(): Promise<{ url: string; close(): void }> {
  const message = (type: string, ...parts: (string | number)[]): Buffer => {
    const body = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : int4(part))));
    return Buffer.concat([Buffer.from(type), int4(body.length + 4), body]);
  };
  const lastWord = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0';
  const all = [message('R', 0), message('K', 7, 7), message('Z', 'I'), message('E', lastWord)];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(Buffer.concat(all)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `postgresql://nobody@127.0.0.1:${port}/nothing`, close: () => server.close() };
}

function int4(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

it("a server's last word in the packet that completes a connection is an error of that connection only", async () => {
  const budget = new ConnectionBudget(2);
  const server = await startLeavingServer();
  const pool = open(budget, 'pool', addressOfUrl(server.url));
  await expect(pool.query('select 1')).rejects.toThrow('connection error');
  await until('it has left', () => budget.total === 0 || undefined);
  server.close();
});
