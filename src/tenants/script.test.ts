import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { administer, serverAddress } from '../../test/harness/postgres-server.ts';
import {
  baseMigrations,
  baseSchema,
  engineOf,
  inDatabase,
  makeTestLife,
  type TestLife,
} from '../../test/harness/tenant-life.ts';
import { engine, engineVersion } from '../engine/engine.ts';
import { sql } from '../kernel/sql.ts';
import { look } from '../loader/inspect.ts';
import { adoptTenant } from './adopt.ts';
import { createTenant } from './create.ts';
import { migrationScript } from './script.ts';
import { planUpgrade, upgradeTenant } from './upgrade.ts';

const newer = engineOf('2.0.0', ['create table more (a integer)']);
const newest = engineOf('3.0.0', ['create table more (a integer)', 'create table most ()']);
const base = { ...baseSchema, version: engineVersion };
const middle = { ...baseSchema, version: newer.version, migrations: newer.all };
const actor = 'key:ann';

let life: TestLife;
beforeAll(async () => {
  life = await makeTestLife([engine, newer, newest]);
});
afterAll(() => life.close());

const run = (name: string, script: string) => inDatabase(life, name, (_, client) => client.query(script));
const version = (name: string) => look(life.addressOf({ id: '', name, database: name, desired: 'on' }), 1_000);
const records = (name: string) =>
  inDatabase(life, name, (db) => db.rows(sql`select number, name, checksum from millrace.migration order by number`));

const functions = (name: string) =>
  inDatabase(life, name, (db) =>
    db.rows(sql`
      select pg_get_functiondef(oid) as definition, functions_checksum
        from pg_proc, millrace.installation
       where pronamespace = 'millrace'::regnamespace
       order by 1`),
  );

async function database(): Promise<string> {
  const name = life.name();
  await administer(serverAddress(), `create database ${name}`);
  return name;
}

describe('migration script', () => {
  it('the script installs the same schema as `create`, with the same records', async () => {
    const [byScript, byUs] = [await database(), life.name()];
    await run(byScript, migrationScript({ from: undefined, to: base }));
    await createTenant(life, { name: byUs, actor });
    expect(await version(byScript)).toEqual({ kind: 'installed', version: engineVersion });
    expect(await records(byScript)).toEqual(await records(byUs));
    expect(await functions(byScript)).toEqual(await functions(byUs));
    await adoptTenant(life, { name: byScript, actor });
    expect(await planUpgrade(life, byScript, { to: newer.version })).toMatchObject({
      migrations: [newer.all.at(-1)?.name],
    });
  });

  it('the script upgrades once, and only from the version that it is made for', async () => {
    const name = life.name();
    await createTenant(life, { name, actor });
    const script = migrationScript({ from: base, to: middle });
    await run(name, script);
    expect(await version(name)).toEqual({ kind: 'installed', version: newer.version });
    await expect(run(name, script)).rejects.toThrow(`not at version ${engineVersion}: it is at ${newer.version}`);
    await expect(run(name, migrationScript({ from: undefined, to: base }))).rejects.toThrow('already exists');
    expect(await version(name)).toEqual({ kind: 'installed', version: newer.version });
  });

  it('no script is made if the versions differ in their earlier migrations', () => {
    const other = { version: '9.0.0', migrations: baseMigrations.slice(0, -1) };
    expect(() => migrationScript({ from: base, to: other })).toThrow('there is no way from');
  });
});

const nextFile = `${String(baseMigrations.length + 1).padStart(4, '0')}_next.sql`;

describe('migration by hand', () => {
  it('a tool takes the locks and records what it applied, and the next upgrade continues from there', async () => {
    const name = life.name();
    await createTenant(life, { name, actor });
    const last = newest.all[baseMigrations.length];
    await run(
      name,
      `begin; select millrace.begin_migration(); create table millrace.more (a integer);
       select millrace.record_migration(${last?.number}, '${last?.name}', '${last?.checksum}');
       select millrace.finish_migration('2.0.0'); commit`,
    );
    expect(await version(name)).toEqual({ kind: 'installed', version: '2.0.0' });
    const { migrations } = await upgradeTenant(life, name, { to: newest.version, actor });
    expect(migrations).toEqual([newest.all.at(-1)?.name]);
  });

  it.each([
    ['without the locks', `select millrace.record_migration(99, 'x', repeat('0', 64))`, 'begin_migration'],
    ['without the locks', `select millrace.finish_migration('9.0.0')`, 'begin_migration'],
    [
      'out of order',
      `select millrace.begin_migration(); select millrace.record_migration(99, 'x', repeat('0', 64))`,
      'the next migration is number',
    ],
    [
      'without a valid version',
      `select millrace.begin_migration(); select millrace.finish_migration('new')`,
      'not a version',
    ],
    [
      'without a valid checksum',
      `select millrace.begin_migration(); select millrace.record_migration((select max(number) + 1 from millrace.migration), '${nextFile}', 'y')`,
      'SHA-256',
    ],
    ...['0099_x.sql', 'x.sql', nextFile.replace('_', 'x'), nextFile.replace('.sql', '.txt')].map((file) => [
      'whose file name does not match its number',
      `select millrace.begin_migration(); select millrace.record_migration(${baseMigrations.length + 1}, '${file}', repeat('0', 64))`,
      `migration ${baseMigrations.length + 1} is in a file called ${nextFile.slice(0, 5)}….sql, not ${file}`,
    ]),
    [
      'to an older version',
      `select millrace.begin_migration(); select millrace.finish_migration('0.0.1')`,
      'there is no way back',
    ],
  ])('a migration %s is refused: %s', async (_, statements, message) => {
    const name = life.name();
    await createTenant(life, { name, actor });
    await expect(run(name, `begin; ${statements}; commit`)).rejects.toThrow(message);
    expect(await version(name)).toEqual({ kind: 'installed', version: engineVersion });
  });

  it('status() returns version, newest migration, connections of engines, and whether a migration is under way', async () => {
    const name = life.name();
    await createTenant(life, { name, actor });
    const status = (before: string) =>
      inDatabase(life, name, async (db, client) => {
        await client.query(before);
        return db.one(sql`select * from millrace.status()`);
      });
    const still = { version: engineVersion, newest_migration: baseMigrations.at(-1)?.name };
    expect(await status('select 1')).toEqual({ ...still, connections: 0, migrating: false });
    expect(await status('select pg_advisory_lock_shared(7345, 4)')).toEqual({
      ...still,
      connections: 1,
      migrating: false,
    });
    expect(await status('begin; select millrace.begin_migration()')).toEqual({
      ...still,
      connections: 0,
      migrating: true,
    });
  });
});
