import type { Pool, PoolClient } from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type FreshDatabase, makeFreshDatabase } from '../../../test/harness/fresh-database.ts';
import { until } from '../../../test/harness/until.ts';
import { pause } from '../../kernel/service.ts';
import { onPool, sql } from '../../kernel/sql.ts';
import { ConnectionBudget } from './connection-budget.ts';
import { makePatient } from './patient-pool.ts';
import { closePool, openPool } from './pool.ts';

const momentMs = 300;
/** Longer than any wait of a test: whoever opens another all the same did not wait at all. */
const longMomentMs = 30_000;

let database: FreshDatabase;
let budget: ConnectionBudget;
let pool: Pool;
beforeEach(async () => {
  database = await makeFreshDatabase();
  budget = new ConnectionBudget(10);
  pool = patient('pool', 3);
});
afterEach(async () => {
  await closePool(pool);
  await database.close();
});

function patient(application: string, max: number, moment = momentMs): Pool {
  const rest = { schema: 'millrace', allowPooler: false, onError: () => {} } as const;
  return makePatient(openPool({ address: database.address, application, max, budget, ...rest }), budget, moment);
}

/** For those who are to take turns, however busy the machine is. */
function waitLong(): void {
  void pool.end();
  pool = patient('pool', 3, longMomentMs);
}

const pidOf = async (): Promise<number> => {
  const { rows } = await pool.query<{ pid: number }>('select pg_backend_pid() as pid');
  return rows[0]?.pid ?? 0;
};

it('short statements that meet take turns on one connection, in the order in which they came', async () => {
  waitLong();
  await pidOf();
  const order: number[] = [];
  const pids = await Promise.all(
    [0, 1, 2, 3, 4].map(async (n) => {
      const pid = await pidOf();
      order.push(n);
      return pid;
    }),
  );
  expect(new Set(pids).size).toBe(1);
  expect(order).toEqual([0, 1, 2, 3, 4]);
});

it('while one is busy for longer, another is opened; never more than there may be', async () => {
  const busy: PoolClient[] = [await pool.connect()];
  busy.push(await pool.connect());
  busy.push(await pool.connect());
  expect(pool.totalCount).toBe(3);
  const fourth = pool.connect();
  await until('it waits', () => pool.waitingCount === 1 || undefined);
  expect(pool.totalCount).toBe(3);
  busy[0]?.release();
  (await fourth).release();
  for (const client of busy.slice(1)) client.release();
});

it('after one was opened no other is for a while, unless a pool has none at all; nobody waits for ever', async () => {
  const busy = await pool.connect();
  // as on a server on which that takes long, and where others are opened all the time: the rest never ends
  const openOne = (): Promise<void> => budget.opening(() => pause(1_000));
  await openOne();
  const others = setInterval(() => void openOne(), 500);
  try {
    const startedMs = performance.now();
    const other = patient('other', 3);
    await other.query('select 1');
    expect(performance.now() - startedMs).toBeLessThan(1_900);
    await other.end();
    const askedMs = performance.now();
    const second = await pool.connect();
    const waitedMs = performance.now() - askedMs;
    expect([waitedMs > 1_900, waitedMs < 20_000]).toEqual([true, true]);
    second.release();
  } finally {
    clearInterval(others);
    busy.release();
  }
});

it('a row of statements, each sent when the one before is answered, makes nobody else open another', async () => {
  waitLong();
  await pidOf();
  const row = async (): Promise<void> => {
    for (let n = 0; n < 50; n++) await onPool(pool).rows(sql`select 1`);
  };
  await Promise.all([row(), row(), row()]);
  expect(pool.totalCount).toBe(1);
});

it('those who wait are told at once when the pool is closed', async () => {
  waitLong();
  const busy = await pool.connect();
  const waiting = pool.connect();
  const startedMs = performance.now();
  const closing = closePool(pool, 20_000);
  await expect(waiting).rejects.toThrow();
  expect(performance.now() - startedMs).toBeLessThan(10_000);
  busy.release();
  await closing;
});

it('whoever waits is served when the connection is lost instead of given back', async () => {
  const busy = await pool.connect();
  const waiting = pidOf();
  busy.release(true);
  expect(await waiting).toBeGreaterThan(0);
});
