import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { administer, serverAddress } from '../../test/harness/postgres-server.ts';
import {
  addressIn,
  engineOf,
  eventsOf,
  holdDrain,
  inDatabase,
  makeTestLife,
  messagesAbout,
  type TestLife,
} from '../../test/harness/tenant-life.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { bodyOf, readAudit } from '../events/audit.ts';
import { sql } from '../kernel/sql.ts';
import { look } from '../loader/inspect.ts';
import { createTenant } from './create.ts';
import { planUpgrade, upgradeTenant } from './upgrade.ts';

const middle = engineOf('2.0.0', ['create table more (a integer)']);
const broken = engineOf('3.0.0', ['create table more (a integer)', 'create table half_way (); select 1 / 0']);
const actor = 'key:ann';
const anyActor = { before: undefined, actor: undefined, topicId: undefined };

let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife([engine, middle, broken]);
});
afterAll(() => life.close());

async function make(): Promise<string> {
  const name = life.name();
  await createTenant(life, { name, actor });
  return name;
}
const addressOf = (name: string) => addressIn(life, name);
const version = (name: string) => look(addressOf(name), 1_000);

describe('upgrade plan', () => {
  it('a plan has both versions, the migrations and the number of sessions that must leave, and changes nothing', async () => {
    const name = await make();
    const holder = await holdDrain(addressOf(name), life.hub);
    const plan = await planUpgrade(life, name, { to: middle.version });
    const migrations = middle.all.slice(-1).map((each) => each.name);
    expect(plan).toMatchObject({ from: engineVersion, to: middle.version, migrations, sessions: 1, message: null });
    expect(holder.isAlive()).toBe(true);
    expect(await version(name)).toEqual({ kind: 'installed', version: engineVersion });
    expect(await messagesAbout(life, name)).toHaveLength(1);
    await holder.close();
  });

  it('a plan without a version goes to the newest engine', async () => {
    expect(await planUpgrade(life, await make(), {})).toMatchObject({ to: broken.version });
  });
});

describe('upgrade', () => {
  it('an upgrade ends the old engine first, applies all migrations in one transaction, and returns the outcome', async () => {
    const name = await make();
    const holder = await holdDrain(addressOf(name), life.hub);
    const done = await upgradeTenant(life, name, { to: middle.version, actor });
    await holder.ended;
    expect(done).toMatchObject({ from: engineVersion, to: middle.version, migrations: [middle.all.at(-1)?.name] });
    expect(done.message).toMatchObject({ kind: 'restart', cause: `upgrade to ${middle.version}`, outcome: 'started' });
    expect(await version(name)).toEqual({ kind: 'installed', version: middle.version });
    expect(await eventsOf(life, name)).toEqual(['tenant.created', 'tenant.upgraded']);
  });

  it('an upgrade to the recorded version applies missing migrations, and otherwise does nothing', async () => {
    const name = await make();
    const nothing = await upgradeTenant(life, name, { to: engineVersion, actor });
    expect(nothing).toMatchObject({ migrations: [], message: null });
    await inDatabase(life, name, (db) => db.exec(sql`update millrace.installation set version = ${middle.version}`));
    const done = await upgradeTenant(life, name, { to: middle.version, actor });
    expect(done).toMatchObject({ from: middle.version, to: middle.version, migrations: [middle.all.at(-1)?.name] });
    await inDatabase(life, name, (db) => db.exec(sql`select from millrace.more`));
  });

  it('an upgrade of a stopped tenant shows the new version at once', async () => {
    const name = await make();
    await life.control.exec(sql`
      insert into launch (tenant_id, state, order_no, version, code, reason, changed_at)
      select id, 'DISABLED', 0, ${engineVersion}, 'stopped_by_user', 'stopped', now() from tenant where name = ${name}
      on conflict (tenant_id) do update set state = 'DISABLED', version = ${engineVersion}`);
    await upgradeTenant(life, name, { to: middle.version, actor });
    const { shown } = await life.control.one<{ shown: string }>(sql`
      select launch.version as shown from launch join tenant on tenant.id = tenant_id where tenant.name = ${name}`);
    expect(shown).toBe(middle.version);
  });

  it('an upgrade to the present version reports that, and ends no sessions', async () => {
    const name = await make();
    const holder = await holdDrain(addressOf(name), life.hub);
    const result = await upgradeTenant(life, name, { to: engineVersion, actor });
    expect(result).toMatchObject({ from: engineVersion, to: engineVersion, migrations: [], message: null });
    expect(holder.isAlive()).toBe(true);
    expect(await messagesAbout(life, name)).toHaveLength(1);
    await holder.close();
  });

  it('two concurrent upgrades migrate once', async () => {
    const name = await make();
    const both = await Promise.all([1, 2].map(() => upgradeTenant(life, name, { to: middle.version, actor })));
    expect(new Set(both.map(({ migrations }) => migrations.length))).toEqual(new Set([0, 1]));
    expect((await messagesAbout(life, name)).map(({ cause }) => cause)).toEqual([
      `install ${engineVersion}`,
      `upgrade to ${middle.version}`,
    ]);
  });

  it('an upgrade that fails names the migration and PostgreSQL’s error, and the tenant keeps its version', async () => {
    const name = await make();
    const failed = upgradeTenant(life, name, { to: broken.version, actor });
    await expect(failed).rejects.toMatchObject({ code: 'migration_failed' });
    await expect(failed).rejects.toThrow(/0*\d+_more\.sql failed: division by zero/);
    expect(await version(name)).toEqual({ kind: 'installed', version: engineVersion });
    const left = await inDatabase(life, name, (db) => db.exec(sql`select from pg_tables where tablename = 'half_way'`));
    expect(left).toBe(0);
    expect(await eventsOf(life, name)).toEqual(['tenant.created', 'tenant.upgrade_failed']);
    const { events } = await readAudit(life.control, { ...anyActor, machines: false, limit: 1 });
    expect(events).toMatchObject([{ type: 'tenant.upgrade_failed', actor }]);
    expect(events.map(bodyOf)).toEqual([
      { name, from: engineVersion, to: broken.version, why: expect.stringContaining('division by zero') as unknown },
    ]);
    const [, restart] = await messagesAbout(life, name);
    expect(restart).toEqual({ kind: 'restart', cause: `upgrade to ${broken.version}`, waits: true });
  });

  it('an upgrade whose session is killed reports that its result is unknown', async () => {
    const name = await make();
    const killing = {
      ...middle,
      migrate: async (client: Parameters<typeof middle.migrate>[0]) => {
        const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
        await administer(serverAddress(), `select pg_terminate_backend(${rows[0]?.pid})`);
        return middle.migrate(client);
      },
    };
    const engines = { ...life.engines, find: async () => ({ ok: true, engine: killing }) as const };
    const killed = upgradeTenant({ ...life, engines }, name, { to: middle.version, actor });
    await expect(killed).rejects.toMatchObject({ code: 'tenant_unavailable' });
    await expect(killed).rejects.toThrow(`millrace tenant show ${name}`);
    expect(await version(name)).toEqual({ kind: 'installed', version: engineVersion });
  });

  it('an upgrade refuses an older version, an unknown engine, and a tenant that is gone or without Millrace', async () => {
    const [name, bare, gone] = [await make(), await make(), await make()];
    await upgradeTenant(life, name, { to: middle.version, actor });
    await inDatabase(life, bare, (_, client) => client.query('drop schema millrace cascade'));
    await administer(serverAddress(), `drop database ${gone}`);
    const to = (tenant: string, target: string) => upgradeTenant(life, tenant, { to: target, actor });
    await expect(to(name, engineVersion)).rejects.toThrow(`is at 2.0.0; ${engineVersion} is older`);
    await expect(to(name, '5.0.0')).rejects.toMatchObject({ faults: [{ path: 'body.to' }] });
    await expect(to(bare, middle.version)).rejects.toThrow(`millrace tenant adopt ${bare}`);
    await expect(to(gone, middle.version)).rejects.toThrow('does not exist');
    await expect(to('nobody', middle.version)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('an upgrade waits briefly for a migration by hand, then reports that one is under way', async () => {
    const name = await make();
    await inDatabase(life, name, async (_, client) => {
      await client.query('begin; select millrace.begin_migration()');
      const refused = upgradeTenant(life, name, { to: middle.version, actor });
      await expect(refused).rejects.toThrow(
        /another transaction is changing it \(a migration, backend \d+.*pg_terminate_backend/,
      );
      await client.query('rollback');
    });
  });
});
