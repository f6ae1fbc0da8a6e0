import type { Client } from 'pg';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FreshDatabase, makeFreshDatabase } from '../../../test/harness/fresh-database.ts';
import { administer, serverAddress } from '../../../test/harness/postgres-server.ts';
import { until } from '../../../test/harness/until.ts';
import { within } from '../../kernel/service.ts';
import { onPool, sql } from '../../kernel/sql.ts';
import { openClient } from './client.ts';
import { ConnectionBudget } from './connection-budget.ts';
import { withClient } from '../databases.ts';
import { type KeptPool, keptPool } from './kept-pool.ts';

let database: FreshDatabase;
let kept: Client;
let pool: KeptPool;
const application = 'kept pool';
beforeEach(async () => {
  database = await makeFreshDatabase();
  await administer(database.address, 'create schema millrace');
  const rest = { address: database.address, schema: 'millrace', application, allowPooler: false } as const;
  kept = await openClient({ ...rest, connectMs: 5_000, signal: new AbortController().signal });
  pool = keptPool(kept, { ...rest, max: 3, momentMs: 500, onError: () => {} });
});
afterEach(async () => {
  pool.destroy();
  await database.close();
});

const pidOf = async (): Promise<number> =>
  (await onPool(pool.pool).one<{ pid: number }>(sql`select pg_backend_pid() as pid`)).pid;
const connections = (): Promise<number> =>
  withClient(serverAddress(), async (client) => {
    const { rows } = await client.query('select from pg_stat_activity where datname = $1 and application_name = $2', [
      database.address.database,
      application,
    ]);
    return rows.length;
  });

describe('a pool around a kept connection', () => {
  it('uses that one, for statements and transactions, as long as it is free', async () => {
    const db = onPool(pool.pool);
    const first = await pidOf();
    const inside = await db.transaction((tx) => tx.one<{ pid: number }>(sql`select pg_backend_pid() as pid`));
    expect([inside.pid, await pidOf()]).toEqual([first, first]);
    expect(await connections()).toBe(1);
  });

  it('makes two short ones that meet take turns', async () => {
    pool.destroy();
    const rest = { address: database.address, schema: 'millrace', application, allowPooler: false } as const;
    kept = await openClient({ ...rest, connectMs: 5_000, signal: new AbortController().signal });
    // however busy the machine is, none waits for so long
    pool = keptPool(kept, { ...rest, max: 3, momentMs: 30_000, onError: () => {} });
    const pids = await Promise.all(Array.from({ length: 5 }, pidOf));
    expect(new Set(pids).size).toBe(1);
  });

  it('opens others while it is busy, and closes them soon after', async () => {
    const db = onPool(pool.pool);
    const own = await pidOf();
    await db.transaction(async () => {
      expect(await pidOf()).not.toBe(own);
      expect(await connections()).toBe(2);
    });
    expect(await pidOf()).toBe(own);
    await until('the other is closed', async () => (await connections()) === 1 || undefined, 5_000);
    expect(await pidOf()).toBe(own);
  });

  it('serves who waits for another, too, when it is free first; what comes late is not lost', async () => {
    const pid = await pidOf();
    const own = await pool.pool.connect();
    const others = await Promise.all([1, 2, 3].map(() => pool.pool.connect()));
    const waiting = [pidOf(), pidOf()];
    own.release();
    expect(await within(5_000, Promise.all(waiting))).toEqual([pid, pid]);
    for (const other of others) other.release();
    expect(await Promise.all([1, 2, 3, 4, 5].map(pidOf))).toHaveLength(5);
    await until('the others are closed', async () => (await connections()) === 1 || undefined, 5_000);
  });

  it('keeps its connection when a statement on it fails', async () => {
    const own = await pidOf();
    await expect(pool.pool.query('select 1 / 0')).rejects.toMatchObject({ code: '22012' });
    await expect(onPool(pool.pool).transaction((tx) => tx.exec(sql`select 1 / 0`))).rejects.toMatchObject({
      code: '22012',
    });
    expect(await pidOf()).toBe(own);
  });

  it('answers nobody any more once it is destroyed, not even who holds a connection (I6)', async () => {
    const own = await pool.pool.connect();
    const other = await pool.pool.connect();
    const under = [own, other].map((client) => {
      client.on('error', () => {});
      return client.query('select pg_sleep(30)').then(
        () => 'done',
        () => 'cut off',
      );
    });
    const ended = new Promise((resolve) => kept.once('end', resolve));
    pool.destroy();
    await ended;
    expect(await Promise.all(under)).toEqual(['cut off', 'cut off']);
    await expect(own.query('select 1')).rejects.toThrow();
    await expect(other.query('select 1')).rejects.toThrow();
    await expect(pool.pool.query('select 1')).rejects.toThrow('closed');
    await expect(pool.pool.connect()).rejects.toThrow('closed');
  });

  it('is cut off when it does not come to an end in time', async () => {
    const client = await pool.pool.connect();
    client.on('error', () => {});
    const query = client.query('select pg_sleep(30)').catch(() => 'cut off');
    const startedAt = performance.now();
    await pool.close(100);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(await query).toBe('cut off');
  });

  it('closes without a word where nothing is under way', async () => {
    await pidOf();
    await pool.close(5_000);
    await until('none is left', async () => (await connections()) === 0);
  });

  it('has another opened for who has waited for two seconds, however busy the others of its process are', async () => {
    pool.destroy();
    const budget = new ConnectionBudget(10);
    const rest = { address: database.address, schema: 'millrace', application, allowPooler: false } as const;
    kept = await openClient({ ...rest, connectMs: 5_000, signal: new AbortController().signal });
    pool = keptPool(kept, { ...rest, max: 3, momentMs: 20, budget, onError: () => {} });
    // as if others were opened all the time, each of which is followed by a rest of two seconds
    await budget.opening(() => sleep(500));
    const others = setInterval(() => void budget.opening(() => sleep(500)), 250);
    try {
      await onPool(pool.pool).transaction(async () => {
        const startedMs = performance.now();
        await pidOf();
        const waitedMs = performance.now() - startedMs;
        expect([waitedMs > 1_500, waitedMs < 6_000]).toEqual([true, true]);
      });
    } finally {
      clearInterval(others);
    }
  });

  it('is waited for where the budget has no room for another, and does not come', async () => {
    const rest = { address: database.address, schema: 'millrace', application, allowPooler: false } as const;
    const own = await openClient({ ...rest, connectMs: 5_000, signal: new AbortController().signal });
    const full = keptPool(own, { ...rest, max: 3, momentMs: 1, onError: () => {}, budget: new ConnectionBudget(0) });
    const client = await full.pool.connect();
    const waiting = full.pool.query('select 1 as n');
    // longer than the budget is waited for
    expect(await within(5_500, waiting)).toBeUndefined();
    client.release();
    expect(await within(20_000, waiting)).toMatchObject({ rows: [{ n: 1 }] });
    full.destroy();
  });

  it('turns away who stands in line when it is closed', async () => {
    const client = await pool.pool.connect();
    const waiting = pool.pool.query('select 1');
    const refused = expect(waiting).rejects.toThrow('closed');
    const closing = pool.close(5_000);
    await refused;
    client.release();
    await closing;
  });

  it('has of a budget only the others, whose idle ones are closed when somebody else needs one', async () => {
    const budget = new ConnectionBudget(1);
    const rest = { address: database.address, schema: 'millrace', allowPooler: false, onError: () => {} } as const;
    const open = async (name: string): Promise<KeptPool> => {
      const signal = new AbortController().signal;
      const own = await openClient({ ...rest, application: name, connectMs: 5_000, signal });
      return keptPool(own, { ...rest, application: name, max: 3, momentMs: 1, budget });
    };
    const both = [await open('one'), await open('two')];
    expect(budget.total).toBe(0);
    for (const { pool: each } of both) {
      const clients = [await each.connect(), await each.connect()];
      expect(budget.total).toBe(1);
      for (const client of clients) client.release();
    }
    const [one, two] = both;
    const taken = [await one?.pool.connect(), await one?.pool.connect()];
    const waiting = (async () => [await two?.pool.connect(), await two?.pool.connect()])();
    expect(await within(300, waiting)).toBeUndefined();
    for (const client of taken) client?.release();
    for (const client of await waiting) client?.release();
    for (const each of both) each.destroy();
    await until('all are given back', () => budget.total === 0 || undefined);
  });
});
