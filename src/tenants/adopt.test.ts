import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { administer, serverAddress } from '../../test/harness/postgres-server.ts';
import {
  engineOf,
  eventsOf,
  inDatabase,
  makeTestLife,
  messagesAbout,
  type TestLife,
} from '../../test/harness/tenant-life.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { newId } from '../kernel/id.ts';
import { sql } from '../kernel/sql.ts';
import { look } from '../loader/inspect.ts';
import { adoptTenant } from './adopt.ts';
import { createTenant } from './create.ts';
import { deleteTenant, findLifeRow } from './queries.ts';
import { releaseTenant } from './release.ts';

const broken = engineOf('8.0.0', ['create table half_way (); select 1 / 0']);
const newer = engineOf('9.0.0', ['create table more ()']);
const actor = 'key:ann';

let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife([engine, broken, newer]);
});
afterAll(() => life.close());

async function database(): Promise<string> {
  const name = life.name();
  await administer(serverAddress(), `create database ${name}`);
  return name;
}

const version = (name: string) => look(life.addressOf({ id: newId(), name, database: name, desired: 'on' }), 1_000);

/** Lists the database as a discovered tenant, as the launcher would. */
async function discover(name: string): Promise<string> {
  const id = newId();
  await life.control.exec(sql`
    insert into tenant (id, name, database, database_oid, discovered, created_at)
    select ${id}, datname, datname, oid, true, clock_timestamp() from pg_database where datname = ${name}`);
  return id;
}

describe('adopt', () => {
  it.each(['CRM Prod', 'foo-20587'])(
    'the refusal of the listed name %s proposes the command that adopts',
    async (listed) => {
      const name = await database();
      const id = await discover(name);
      await life.control.exec(sql`update tenant set name = ${listed} where id = ${id}`);
      const proposed = listed === 'CRM Prod' ? 'crm-prod' : listed;
      await expect(adoptTenant(life, { name: listed, actor })).rejects.toMatchObject({
        code: 'conflict',
        message: `the discovered tenant ${listed} is the database ${name}; to adopt it: millrace tenant adopt ${proposed} --database ${name}`,
      });
      await adoptTenant(life, { name: proposed, database: name, actor });
      expect(await findLifeRow(life.control, proposed)).toMatchObject({ id, discovered: false });
    },
  );

  it('adopting installs Millrace beside the tables of a database', async () => {
    const name = await database();
    await administer(
      life.addressOf({ id: '', name, database: name, desired: 'on' }),
      'create table public.theirs (a integer)',
    );
    const { message } = await adoptTenant(life, { name, actor });
    expect(message).toMatchObject({ kind: 'restart', cause: `install ${engineVersion}`, outcome: 'started' });
    expect(await version(name)).toEqual({ kind: 'installed', version: engineVersion });
    await inDatabase(life, name, async (db) => expect(await db.exec(sql`select from public.theirs`)).toBe(0));
    expect(await eventsOf(life, name)).toEqual(['tenant.adopted']);
  });

  it('adopting a database that has Millrace changes nothing in it and sends a START, under any name', async () => {
    const [name, old] = [life.name(), life.name()];
    const { tenantId } = await createTenant(life, { name: old, version: newer.version, actor });
    await deleteTenant(life.control, tenantId);
    await expect(adoptTenant(life, { name, database: old, version: engineVersion, actor })).rejects.toMatchObject({
      faults: [{ path: 'body.version' }],
    });
    const { message } = await adoptTenant(life, { name, database: old, actor });
    expect(message).toMatchObject({ kind: 'start', outcome: 'started', xid: null });
    expect(await version(old)).toEqual({ kind: 'installed', version: newer.version });
    expect(await findLifeRow(life.control, name)).toMatchObject({ database: old });
  });

  it('adopting a discovered tenant registers it under the requested name', async () => {
    const [name, found] = [life.name(), await database()];
    const id = await discover(found);
    const { tenantId } = await adoptTenant(life, { name, database: found, ownHost: true, actor });
    expect(tenantId).toBe(id);
    expect(await findLifeRow(life.control, name)).toMatchObject({
      id,
      discovered: false,
      ownHost: true,
      database: found,
    });
    expect(await findLifeRow(life.control, found)).toBeUndefined();
  });

  it('adopting refuses a database that is missing, a template, closed to connections, or another tenant’s', async () => {
    const [closed, template, other] = [await database(), await database(), life.name()];
    await administer(serverAddress(), `alter database ${closed} allow_connections false`);
    await administer(serverAddress(), `alter database ${template} is_template true`);
    await createTenant(life, { name: other, actor });
    const adopt = (name: string, of: string) => adoptTenant(life, { name, database: of, actor });
    await expect(adopt(life.name(), 'nowhere_at_all')).rejects.toMatchObject({ code: 'not_found' });
    await expect(adopt(life.name(), closed)).rejects.toThrow('accepts no connections');
    await expect(adopt(life.name(), template)).rejects.toThrow('is a template');
    await expect(adopt(life.name(), other)).rejects.toThrow(`belongs to tenant ${other}`);
    await expect(adopt(other, other)).rejects.toThrow(`already belongs to tenant ${other}`);
    await expect(adopt(other, await database())).rejects.toThrow(`there is a tenant ${other} already`);
    await expect(adopt(life.name(), life.controlAddress.database)).rejects.toThrow('it is the control database');
    await administer(serverAddress(), `alter database ${template} is_template false`);
    expect(await eventsOf(life, other)).toEqual(['tenant.created']);
  });

  it('adopting refuses a database with a schema millrace that is not ours, and does not touch the schema', async () => {
    const name = await database();
    await inDatabase(life, name, (_, client) => client.query('create schema millrace create table theirs ()'));
    await expect(adoptTenant(life, { name, actor })).rejects.toMatchObject({
      code: 'conflict',
      message: `the database has a schema millrace that is not Millrace's (it holds theirs); rename or drop it`,
    });
    await inDatabase(life, name, async (db) => expect(await db.exec(sql`select from millrace.theirs`)).toBe(0));
    await inDatabase(life, name, (_, client) => client.query('drop table millrace.theirs'));
    expect((await adoptTenant(life, { name, actor })).message.outcome).toBe('started');
  });

  it('an adoption whose installation fails changes nothing', async () => {
    const [plain, found, name] = [await database(), await database(), life.name()];
    const id = await discover(found);
    await expect(adoptTenant(life, { name: plain, version: broken.version, actor })).rejects.toThrow(
      'division by zero',
    );
    await expect(adoptTenant(life, { name, database: found, version: broken.version, actor })).rejects.toMatchObject({
      code: 'migration_failed',
    });
    expect(await findLifeRow(life.control, plain)).toBeUndefined();
    expect(await findLifeRow(life.control, found)).toMatchObject({ id, discovered: true });
    for (const each of [plain, found]) expect(await version(each)).toEqual({ kind: 'not_installed' });
    expect(await eventsOf(life, plain)).toEqual(['tenant.adopted', 'tenant.adoption_failed']);
    expect((await adoptTenant(life, { name: plain, actor })).message.outcome).toBe('started');
  });
});

describe('release', () => {
  const addKey = (tenantId: string) =>
    life.control.exec(sql`
      insert into key (id, name, role, tenant_id, hash, created_at, created_by)
      values (${newId()}, 'k', 'viewer', ${tenantId}, ${Buffer.from(newId())}, clock_timestamp(), 'test')`);
  const keysOf = (tenantId: string) => life.control.exec(sql`select from key where tenant_id = ${tenantId}`);

  it('releasing removes Millrace after a RESTART, keeps the database, and deletes the tenant with its keys', async () => {
    const name = life.name();
    const { tenantId } = await createTenant(life, { name, actor });
    await addKey(tenantId);
    await administer(life.addressOf({ id: '', name, database: name, desired: 'on' }), 'create table public.theirs ()');
    await releaseTenant(life, name, { actor });
    expect(await version(name)).toEqual({ kind: 'not_installed' });
    await inDatabase(life, name, async (db) => expect(await db.exec(sql`select from public.theirs`)).toBe(0));
    expect(await findLifeRow(life.control, name)).toBeUndefined();
    expect(await keysOf(tenantId)).toBe(0);
    expect((await messagesAbout(life, name)).at(-1)).toEqual({ kind: 'restart', cause: 'release', waits: true });
    expect(await eventsOf(life, name)).toEqual(['tenant.created', 'tenant.released']);
    await expect(releaseTenant(life, name, { actor })).rejects.toMatchObject({ code: 'not_found' });
  });

  it('a released tenant stays listed without keys if databases are discovered', async () => {
    const name = life.name();
    const discovering = { ...life, discovers: true };
    const { tenantId } = await createTenant(discovering, { name, actor, ownHost: true });
    await addKey(tenantId);
    await releaseTenant(discovering, name, { actor });
    expect(await findLifeRow(life.control, name)).toMatchObject({ id: tenantId, discovered: true, ownHost: false });
    expect(await keysOf(tenantId)).toBe(0);
    await expect(releaseTenant(discovering, name, { actor })).rejects.toThrow('Millrace is not installed');
    expect((await adoptTenant(discovering, { name, actor })).tenantId).toBe(tenantId);
  });

  it('releasing again completes a release that died after it had removed the schema', async () => {
    const name = life.name();
    await createTenant(life, { name, actor });
    await inDatabase(life, name, (_, client) => client.query('drop schema millrace cascade'));
    await releaseTenant(life, name, { actor });
    expect(await findLifeRow(life.control, name)).toBeUndefined();
  });

  it('releasing removes an installation without a version, but not a schema that is not ours', async () => {
    const [name, other] = [life.name(), life.name()];
    const discovering = { ...life, discovers: true };
    await createTenant(discovering, { name, actor });
    await createTenant(discovering, { name: other, actor });
    await inDatabase(life, name, (_, client) => client.query('drop table millrace.installation'));
    const theirs = 'drop schema millrace cascade; create schema millrace; create table millrace.theirs ()';
    await inDatabase(life, other, (_, client) => client.query(theirs));
    await releaseTenant(discovering, name, { actor });
    await releaseTenant(discovering, other, { actor });
    const schemas = (each: string) =>
      inDatabase(life, each, (db) => db.exec(sql`select from pg_namespace where nspname = 'millrace'`));
    expect([await schemas(name), await schemas(other)]).toEqual([0, 1]);
  });

  it('releasing refuses the default tenant, and a tenant whose database is gone', async () => {
    await expect(releaseTenant(life, 'default', { actor })).rejects.toThrow('cannot be released');
    const name = life.name();
    await createTenant(life, { name, actor });
    await administer(serverAddress(), `drop database ${name}`);
    await expect(releaseTenant(life, name, { actor })).rejects.toThrow(`millrace tenant drop ${name}`);
  });
});
