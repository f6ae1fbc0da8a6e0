import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import { type Fleet, makeFleet, opened } from '../../test/harness/fleet.ts';
import { type FreshDatabase, makeFreshDatabase, makeInstalledTenant } from '../../test/harness/fresh-database.ts';
import { until } from '../../test/harness/until.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { onPool, sql } from '../kernel/sql.ts';
import { withClient } from '../postgres/databases.ts';
import { migrate } from '../postgres/migrate.ts';
import { ownSchemaSource } from '../postgres/schema-source.ts';
import { registerTenant, type TenantRow } from '../control/queries.ts';

const [beforeLast, last] = (await ownSchemaSource('tenant')).migrations.slice(-2);

let fleet: Fleet;
const databases: FreshDatabase[] = [];
beforeAll(async () => {
  fleet = await makeFleet(['a']);
});
afterAll(async () => {
  await fleet.close();
  await Promise.all(databases.map((database) => database.close()));
});

async function register(name: string, database: FreshDatabase | string): Promise<TenantRow> {
  if (typeof database !== 'string') databases.push(database);
  const row = { id: newId(), name, database: typeof database === 'string' ? database : database.address.database };
  await registerTenant(fleet.control.db, { ...row, at: new Date() });
  return { ...row, desired: 'on' };
}
const ask = async (loader: Fleet['loader'], name: string): Promise<unknown> => {
  const { ctx } = await opened(loader, name);
  return onPool(ctx.pool).one(sql`select current_database() as name`);
};

describe('loader', () => {
  it('the loader opens a tenant once for concurrent requests, with the engine of its recorded version', async () => {
    const loader = fleet.newLoader();
    const all = await Promise.all(Array.from({ length: 5 }, () => opened(loader, 'a')));
    expect(new Set(all).size).toBe(1);
    expect(all[0]?.engine.version).toBe(engineVersion);
    expect(await ask(loader, 'a')).toEqual({ name: all[0]?.row.database });
  });

  it('the loader rejects an unknown tenant, and finds one that was just created', async () => {
    const loader = fleet.newLoader();
    await expect(opened(loader, 'new')).rejects.toMatchObject({ code: 'not_found' });
    await register('new', await makeInstalledTenant());
    await expect(ask(loader, 'new')).resolves.toBeDefined();
  });

  it('the error for a missing engine names tenant and version', async () => {
    await register('ahead', await makeInstalledTenant('99.0.0'));
    await expect(opened(fleet.loader, 'ahead')).rejects.toMatchObject({
      code: 'no_engine',
      message: 'tenant ahead is at version 99.0.0: it is not here',
    });
  });

  it('the loader chooses among several engines by the version', async () => {
    await register('old', await makeInstalledTenant('0.0.9'));
    const loader = fleet.newLoader({ engines: [engine, { ...engine, version: '0.0.9' }] });
    expect((await opened(loader, 'old')).engine.version).toBe('0.0.9');
    expect((await opened(loader, 'a')).engine.version).toBe(engineVersion);
    await expect(ask(loader, 'old')).resolves.toBeDefined();
  });

  it('the loader reports a database without Millrace as not installed, and a missing one as not existing', async () => {
    await register('bare', await makeFreshDatabase());
    await register('missing', 'no_such_database');
    await expect(opened(fleet.loader, 'bare')).rejects.toMatchObject({
      code: 'not_installed',
      message: 'tenant bare is not installed',
    });
    await expect(opened(fleet.loader, 'missing')).rejects.toMatchObject({
      code: 'tenant_unavailable',
      message: textWith('does not exist'),
    });
  });

  it('the loader retries a second after a failure, or at a notification', async () => {
    const database = await makeFreshDatabase();
    const row = await register('later', database);
    // the second one would retry only after the test
    const [loader, patient] = [fleet.newLoader(), fleet.newLoader({ failureLifeMs: 3_600_000 })];
    for (const each of [loader, patient])
      await expect(opened(each, 'later')).rejects.toMatchObject({ code: 'not_installed' });
    const source = await ownSchemaSource('tenant');
    await withClient(database.address, (client) => migrate(client, { ...source, version: engineVersion }));
    await until('it opens by itself', () => opened(loader, 'later').catch(() => undefined));
    await expect(opened(patient, 'later')).rejects.toMatchObject({ code: 'not_installed' });
    fleet.hub.send('tenant', row.id, true);
    expect(await opened(patient, 'later')).toBeDefined();
  });

  it.each([
    [`delete from millrace.migration where number = ${last?.number}`, `${last?.name} is missing`],
    [
      `delete from millrace.migration where number >= ${beforeLast?.number}`,
      `${beforeLast?.name}, ${last?.name} are missing`,
    ],
    ["update millrace.installation set functions_checksum = repeat('0', 64)", 'its set of SQL functions is missing'],
    ['drop table millrace.migration', 'no migration is recorded: it is still being restored'],
    [
      "update millrace.migration set checksum = repeat('0', 64) where number = 9",
      'migration 0009_retention.sql was applied',
    ],
    [
      "insert into millrace.migration values (9000, '9000_evil.sql', repeat('0', 64))",
      'the database has migration 9000_evil',
    ],
  ])(
    'the loader does not serve a tenant whose version was recorded without its migrations: %s',
    async (change, detail) => {
      const database = await makeInstalledTenant();
      const { name } = await register(`unfit ${newId()}`, database);
      await withClient(database.address, (client) => client.query(change));
      const refused = await opened(fleet.newLoader(), name).catch((error: unknown) => error);
      const sentence = `the database of tenant ${name} cannot be used: its schema does not match engine ${engineVersion}: `;
      expect(refused).toMatchObject({ code: 'tenant_unavailable', message: textWith(sentence) });
      expect(refused).toMatchObject({ message: textWith(detail) });
    },
  );

  it('the loader closes a tenant’s pool when its version has changed, and opens it again later (I6)', async () => {
    const database = await makeInstalledTenant();
    const row = await register('upgraded', database);
    const loader = fleet.newLoader();
    const before = await opened(loader, 'upgraded');
    await ask(loader, 'upgraded');
    // as after a notification: no connection is left when the migration comes
    await loader.close(row.id);
    const again = await opened(loader, 'upgraded');
    await withClient(database.address, (client) => client.query(`update millrace.installation set version = '2.0.0'`));
    await expect(onPool(again.ctx.pool).one(sql`select 1`)).rejects.toMatchObject({
      name: 'VersionMismatch',
      recorded: '2.0.0',
    });
    await until('its pool is closed', () => again.ctx.pool.ended || undefined);
    expect(before.ctx.pool.ended).toBe(true);
    await expect(opened(loader, 'upgraded')).rejects.toMatchObject({ code: 'no_engine' });
    await withClient(database.address, (client) =>
      client.query(`update millrace.installation set version = '${engineVersion}'`),
    );
    await until('it opens again', () => ask(loader, 'upgraded').catch(() => undefined));
  });

  it('the loader does not serve another database that has taken the name of a tenant’s database', async () => {
    const { control } = fleet;
    const [mine, theirs] = await Promise.all([makeInstalledTenant(), makeInstalledTenant()]);
    await Promise.all([register('mine', mine), register('theirs', theirs)]);
    await control.db.exec(sql`update tenant set database_oid = oid from pg_database where database = datname`);
    const loader = fleet.newLoader();
    const before = await opened(loader, 'mine');
    const [a, b] = [mine.address.database, theirs.address.database];
    await withClient(control.address, async (client) => {
      for (const name of [a, b])
        await client.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = $1`, [name]);
      await client.query(`alter database "${a}" rename to "${a} passing"`);
      await client.query(`alter database "${b}" rename to "${a}"`);
      await client.query(`alter database "${a} passing" rename to "${b}"`);
    });
    await expect(onPool(before.ctx.pool).one(sql`select 1`)).rejects.toMatchObject({ code: '3D000' });
    await expect(opened(fleet.newLoader(), 'mine')).rejects.toMatchObject({ message: textWith('does not exist') });
    await control.db.exec(sql`update tenant set database = ${`${a} passing`} where name = 'theirs'`);
    await control.db.exec(sql`update tenant set database = ${b} where name = 'mine'`);
    expect(await ask(fleet.newLoader(), 'mine')).toEqual({ name: b });
  });

  it('the loader caches the list of tenants until it is invalidated', async () => {
    const loader = fleet.newLoader();
    const before = (await loader.tenants()).length;
    await register(`fresh ${newId()}`, 'nowhere');
    expect(await loader.tenants()).toHaveLength(before);
    loader.forgetList();
    expect(await loader.tenants()).toHaveLength(before + 1);
  });

  it('the loader does not cache a failed read of the list', async () => {
    let broken = true;
    const control = {
      ...fleet.control.db,
      rows: ((query) =>
        broken ? Promise.reject(new Error('not now')) : fleet.control.db.rows(query)) as typeof fleet.control.db.rows,
    };
    const loader = fleet.newLoader({ control });
    await expect(loader.tenants()).rejects.toThrow('not now');
    broken = false;
    expect((await loader.tenants()).length).toBeGreaterThan(0);
  });

  it('a closed loader leaves no connection open', async () => {
    const loader = fleet.newLoader({ application: 'to be closed' });
    await ask(loader, 'a');
    await loader.closeAll();
    await until('none is left', async () => {
      const left = await fleet.control.db.rows(
        sql`select 1 from pg_stat_activity where application_name like 'to be closed%'`,
      );
      return left.length === 0 || undefined;
    });
  });
});
