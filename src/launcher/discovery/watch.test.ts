/** Which transactions count as blocking a tenant, over successive polls. */
import { expect, it } from 'vitest';
import { makeInstalledTenant } from '../../../test/harness/fresh-database.ts';
import { serverAddress } from '../../../test/harness/postgres-server.ts';
import { until } from '../../../test/harness/until.ts';
import { onClient, sql } from '../../kernel/sql.ts';
import { withClient } from '../../postgres/databases.ts';
import { type Sighting, readSightings, Watch } from './watch.ts';

const sighting = (more: Partial<Sighting>): Sighting => ({
  databaseOid: 1,
  what: 'tables',
  pid: 7,
  virtualTransaction: '3/4',
  xid: '8',
  granted: true,
  inTheWay: false,
  ...more,
});
const idle = sighting({});
const blocking = sighting({ inTheWay: true });
const migration = sighting({ what: 'drain', pid: 9, inTheWay: true });

it('a migration counts at once', () => {
  const watch = new Watch();
  expect(watch.note([migration], 0)).toBe(true);
  expect(watch.current).toEqual([migration]);
  expect(watch.note([], 1)).toBe(true);
});

it('a transaction that has locked tables counts once it has lasted 2 s and an engine has waited, until it ends', () => {
  const watch = new Watch();
  const news = [blocking, idle, idle, blocking].map((seen, i) => watch.note([seen], i * 900));
  expect(news).toEqual([false, false, false, true]);
  expect(watch.note([idle], 3_600), 'the tables stay locked although no engine waits any more').toBe(false);
  expect(watch.current).toEqual([idle]);
  expect(watch.overdue(60_000, { drain: 0, database: 0 }), 'no connection is ended for it').toEqual([]);
  expect(watch.note([], 4_500)).toBe(true);
  expect(watch.note([blocking], 5_400), 'the next transaction counts from zero').toBe(false);
});

it('a transaction whose locked tables no engine waits for never counts', () => {
  const watch = new Watch();
  expect([0, 5_000, 50_000].map((at) => watch.note([idle], at))).toEqual([false, false, false]);
  expect(watch.current).toEqual([]);
});

it('locks on tables are seen once per transaction, with whether an engine waits; locks of engines are not seen', async () => {
  const tenant = await makeInstalledTenant();
  const drainShared = 'select pg_advisory_lock_shared(7345, 4)';
  await withClient(tenant.address, (locker) =>
    withClient(tenant.address, async (waiter) => {
      const { oid, pid } = await onClient(locker).one<{ oid: number; pid: number }>(sql`
        select oid, pg_backend_pid() as pid from pg_database where datname = current_database()`);
      const seen = () =>
        withClient(serverAddress(), async (client) =>
          (await readSightings(onClient(client))).filter(({ databaseOid }) => databaseOid === oid),
        );
      await locker.query('begin; lock table millrace.installation, millrace.migration in access exclusive mode');
      expect(await seen()).toMatchObject([{ what: 'tables', pid, granted: true, inTheWay: false }]);
      const reading = waiter.query('select from millrace.installation');
      await until('it waits', async () => {
        const waiting = await locker.query(`select from pg_locks where not granted and database = ${oid}`);
        return waiting.rows.length > 0 || undefined;
      });
      expect(await seen(), 'the waiter is not an engine').toMatchObject([{ what: 'tables', pid, inTheWay: false }]);
      await locker.query('rollback');
      await reading;
      await waiter.query(drainShared);
      await locker.query('begin; lock table millrace.installation, millrace.migration in access exclusive mode');
      const again = waiter.query('select from millrace.installation');
      await until('it is in the way', async () => (await seen())[0]?.inTheWay || undefined);
      expect(await seen()).toHaveLength(1);
      await locker.query(drainShared);
      expect(await seen()).toEqual([]);
      await locker.query('rollback');
      await again;
    }),
  );
  await tenant.close();
});

it('of two transactions that request drain, the one that holds it comes last, because that one is named', async () => {
  const tenant = await makeInstalledTenant();
  const drain = 'begin; select pg_advisory_xact_lock(7345, 4)';
  await withClient(tenant.address, (waiter) =>
    withClient(tenant.address, async (holder) => {
      const { oid, pid } = await onClient(holder).one<{ oid: number; pid: number }>(sql`
        select oid, pg_backend_pid() as pid from pg_database where datname = current_database()`);
      await holder.query(drain);
      const waiting = waiter.query(drain);
      const seen = await until('both are seen', async () => {
        const sightings = await withClient(serverAddress(), (client) => readSightings(onClient(client)));
        const ours = sightings.filter(({ databaseOid }) => databaseOid === oid);
        return ours.length === 2 ? ours : undefined;
      });
      expect(seen).toMatchObject([{ granted: false }, { granted: true, pid }]);
      await holder.query('rollback');
      await waiting;
    }),
  );
  await tenant.close();
});
