import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet } from '../../test/harness/fleet.ts';
import { type Db, sql } from '../kernel/sql.ts';
import { Members } from './members.ts';

let fleet: Fleet;

beforeAll(async () => {
  fleet = await makeFleet([]);
});
afterAll(() => fleet.close());

it('A conductor that was silent forgets its executions, also if the database fails while it registers anew.', async () => {
  const { db } = fleet.control;
  let failing = 0;
  const control = new Proxy(db, {
    get: (target, key: keyof Db) => {
      if (key === 'exec' && failing-- > 0) return () => Promise.reject(new Error('the database fails'));
      return target[key];
    },
  });
  let renewed = 0;
  const members = new Members({
    control,
    version: '1',
    functions: () => new Set(),
    tenants: () => [],
    tally: () => ({ tenants: {}, executions: {} }),
    onChanged: () => {},
    onRenewed: () => (renewed += 1),
  });
  await members.beat();
  const former = members.view.id;
  await db.exec(sql`update conductor set lost_at = clock_timestamp() where id = ${former}`);
  failing = 1;
  await expect(members.beat()).rejects.toThrow('the database fails');
  await members.beat();
  expect([renewed, members.view.id === former]).toEqual([1, false]);
});
