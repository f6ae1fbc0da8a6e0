import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeTenantDatabase, type TenantDatabase } from '../../../test/harness/tenant-database.ts';
import { sql } from '../../kernel/sql.ts';

let database: TenantDatabase;
beforeAll(async () => {
  database = await makeTenantDatabase();
});
afterAll(() => database.close());

const url = 'https://example.com/1';

it('an event is in the outbox after the commit of its transaction, and not after a rollback', async () => {
  const { db } = database;
  await db.transaction(async (tx) => {
    await tx.exec(sql`select millrace.publish('orders', 'update', ${url}, '{"a": 1}', 'k')`);
    await tx.exec(sql`select millrace.publish('orders', 'noop', ${url})`);
  });
  const failing = db.transaction(async (tx) => {
    await tx.exec(sql`select millrace.publish('orders', 'delete', ${url})`);
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  expect(await db.rows(sql`select topic, type, data, key from outbox order by id`)).toEqual([
    { topic: 'orders', type: 'update', data: { a: 1 }, key: 'k' },
    { topic: 'orders', type: 'noop', data: null, key: null },
  ]);
});

it.each([
  [sql`select millrace.publish('Orders', 'update', ${url})`, /^bad topic/],
  [sql`select millrace.publish('millrace_jobs', 'update', ${url})`, /^topic claimed/],
  [sql`select millrace.publish('orders', null, ${url})`, /^bad event: type/],
  [sql`select millrace.publish('orders', 'update', 'http://example.com/')`, /^bad event: url/],
  [sql`select millrace.publish('orders', 'update', 'https://example.com/?a')`, /^bad event: url/],
  [sql`select millrace.publish('orders', 'update', ${url}, '[1]')`, /^bad event: data/],
  [sql`select millrace.publish('orders', 'update', ${url}, null, '')`, /^bad event: key/],
])('bad input is refused', async (statement, message) => {
  await expect(database.db.exec(statement)).rejects.toThrow(message);
});

it('transactions that publish do not wait for each other', async () => {
  const { db } = database;
  await db.transaction(async (tx) => {
    await tx.exec(sql`select millrace.publish('orders', 'update', ${url})`);
    await db.transaction(async (other) => {
      await other.exec(sql`set local lock_timeout to 500`);
      await other.exec(sql`select millrace.publish('orders', 'update', ${url})`);
    });
  });
});
