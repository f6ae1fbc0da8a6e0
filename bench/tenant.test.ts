import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../test/harness/fleet.ts';
import { until } from '../test/harness/until.ts';
import { sql } from '../src/kernel/sql.ts';
import { onDatabase } from '../src/postgres/address.ts';
import { endAll } from './ending.ts';
import { openTenant } from './tenant.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await makeFleet(['default']);
});
afterAll(() => fleet.close());

it('endAll closes a tenant that a failed benchmark left open', async () => {
  const { db, address } = fleet.control;
  const database = fleet.tenants[0]?.row.database ?? '';
  const connections = async (): Promise<number> =>
    (
      await db.one<{ n: number }>(sql`
        select count(*) as n from pg_stat_activity
         where datname in (${address.database}, ${database}) and application_name in ('millrace bench', 'millrace wake')`)
    ).n;
  const tenant = await openTenant(address, onDatabase(address, database));
  await tenant.db.one(sql`select 1 as n`);
  expect(await connections()).toBe(2);
  await endAll();
  await until('its connections are gone', async () => (await connections()) === 0 || undefined);
  await expect(tenant.db.one(sql`select 1 as n`)).rejects.toThrow('after calling end');
});
