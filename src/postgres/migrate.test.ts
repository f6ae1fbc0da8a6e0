import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import { type FreshDatabase, freshAddress, makeFreshDatabase } from '../../test/harness/fresh-database.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { ensureDatabase, withClient } from './databases.ts';
import { type FunctionSet, functionSetOf } from './function-set.ts';
import { migrate, type MigrateOptions, type Migration, pendingMigrations, readMigrations } from './migrate.ts';

let fresh: FreshDatabase;
beforeEach(async () => {
  fresh = await makeFreshDatabase();
});
afterEach(() => fresh.close());

const step = (number: number, text: string): Migration => {
  const checksum = createHash('sha256').update(text).digest('hex');
  return { number, name: `000${number}_step.sql`, text, checksum };
};
const one = step(1, 'create table a (id integer)');
const two = step(2, 'create table b (id integer)');

type Options = Partial<MigrateOptions>;
const optionsOf = (migrations: readonly Migration[], more: Options): MigrateOptions => ({
  schema: 'millrace',
  migrations,
  version: '1.0.0',
  ...more,
});
const run = (migrations: readonly Migration[], more: Options = {}): Promise<string[]> =>
  withClient(fresh.address, (client) => migrate(client, optionsOf(migrations, more)));
const pending = (migrations: readonly Migration[], more: Options = {}): Promise<string[]> =>
  withClient(fresh.address, (client) => pendingMigrations(client, optionsOf(migrations, more)));

function ask<T>(query: ReturnType<typeof sql>): Promise<T[]> {
  return withClient(fresh.address, (client) => onClient(client).rows(query)) as Promise<T[]>;
}

const tables = async (): Promise<string[]> =>
  (await ask<{ tablename: string }>(sql`select tablename from pg_tables where schemaname = 'millrace' order by 1`)).map(
    (row) => row.tablename,
  );
const version = async (): Promise<string | undefined> =>
  (await ask<{ version: string }>(sql`select version from millrace.installation`))[0]?.version;

describe('migrating', () => {
  it('applies what is missing, once, and records the version', async () => {
    expect(await run([one])).toEqual([one.name]);
    expect(await run([one])).toEqual([]);
    expect(await run([one, two], { version: '2.0.0' })).toEqual([two.name]);
    expect(await tables()).toEqual(['a', 'b', 'installation', 'migration']);
    expect(await version()).toBe('2.0.0');
  });

  it('needs no right to make what is there already', async () => {
    await run([one]);
    await withClient(fresh.address, async (client) => {
      const role = fresh.address.database;
      await client.query(`create role ${role}`);
      await client.query(`grant usage on schema millrace to ${role}`);
      await client.query(`grant select on all tables in schema millrace to ${role}`);
      await client.query(`set role ${role}`);
      expect(await migrate(client, optionsOf([one], {}))).toEqual([]);
      await client.query(`reset role; drop owned by ${role}; drop role ${role}`);
    });
  });

  it('records a newer version although there is nothing to apply', async () => {
    await run([one]);
    expect(await run([one], { version: '1.0.1' })).toEqual([]);
    expect(await version()).toBe('1.0.1');
  });

  it('records another build of the same version, for a tenant is served by the one that it names', async () => {
    await run([one]);
    for (const build of ['1.0.0+hotfix', '1.0.0+hotfix', '1.0.0']) {
      expect(await run([one], { version: build })).toEqual([]);
      expect(await version()).toBe(build);
    }
  });

  it('happens once when ten processes make and migrate the same database at once', async () => {
    const missing = freshAddress();
    const starting = Array.from({ length: 10 }, async () => {
      const made = await ensureDatabase(missing.address);
      const options = optionsOf([one, two], {});
      const applied = await withClient(missing.address, (client) => migrate(client, options));
      return { made, applied: applied.length };
    });
    const outcomes = await Promise.all(starting);
    expect(outcomes.filter(({ made }) => made)).toHaveLength(1);
    expect(outcomes.map(({ applied }) => applied).toSorted((a, b) => a - b)).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    await missing.close();
  });

  it('that fails leaves nothing behind, not even what came before it', async () => {
    const bad = step(2, 'create table b (id integer); select 1 / 0');
    await expect(run([one, bad])).rejects.toThrow('migration 0002_step.sql failed');
    expect(await tables()).toEqual([]);
    expect(await run([one, two])).toHaveLength(2);
  });

  it('refuses a migration whose content has changed since', async () => {
    await run([one, two]);
    const changed = [one, step(2, 'create table c (id integer)')];
    const refused = { code: 'bad_configuration', message: textWith('0002_step.sql') };
    await expect(run(changed)).rejects.toMatchObject(refused);
    await expect(pending(changed)).rejects.toMatchObject(refused);
    expect(await tables()).not.toContain('c');
  });

  it('accepts a migration whose former content was applied', async () => {
    await run([one]);
    const rewritten = { ...step(1, 'create table a (id integer) -- as before'), formerChecksums: [one.checksum] };
    expect(await pending([rewritten, two])).toEqual([two.name]);
    expect(await run([rewritten, two])).toEqual([two.name]);
    expect(await run([rewritten, two])).toEqual([]);
  });

  it('refuses a database with more migrations than are known, and leaves its version alone', async () => {
    await run([one, two]);
    await expect(run([one])).rejects.toMatchObject({ code: 'bad_configuration', message: textWith('newer one') });
    expect(await version()).toBe('1.0.0');
  });

  it.each([
    ['a newer release', '1.0.1', '1.0.0'],
    ['the release of a pre-release', '1.0.0', '1.0.0-rc.1'],
  ])('refuses a tenant of %s, though it knows all its migrations', async (_, installed, older) => {
    await run([one], { version: installed });
    const refused = { code: 'conflict', message: `the tenant is at ${installed}; engine ${older} is older` };
    await expect(run([one], { version: older })).rejects.toMatchObject(refused);
    await expect(run([one, two], { version: older })).rejects.toMatchObject(refused);
    await expect(pending([one], { version: older })).rejects.toMatchObject(refused);
    expect(await version()).toBe(installed);
    expect(await tables()).not.toContain('b');
  });

  it('leaves the control database of a newer release alone where it knows all its migrations', async () => {
    const control = { schema: 'control' } as const;
    await run([one], { ...control, version: '1.0.1' });
    expect(await run([one], { ...control, version: '1.0.0' })).toEqual([]);
    expect(await ask(sql`select version from control.installation`)).toEqual([{ version: '1.0.1' }]);
  });
});

describe('the set of functions', () => {
  const columns = `alter table installation
    add column functions_checksum text, add column functions_declared text[] not null default '{}'`;
  const base = step(1, `create table a (id integer); ${columns}`);
  const setOf = (...functions: readonly string[]): FunctionSet =>
    functionSetOf(
      'millrace',
      functions.map((text) => ({ name: /^\w+/.exec(text)?.[0] ?? '', text: `create or replace function ${text}` })),
    );
  const load = (functions: FunctionSet, more: Options = {}): Promise<string[]> => run([base], { functions, ...more });
  const declared = async (schema = 'millrace'): Promise<string[]> =>
    (
      await ask<{ name: string }>(sql`
        select format('%s(%s) %s', proname, pg_get_function_arguments(oid), pg_get_function_result(oid)) as name
          from pg_proc where pronamespace = ${schema}::regnamespace order by 1`)
    ).map(({ name }) => name);
  const one = `one() returns integer language sql as $$ select 1 $$;`;
  const two = `two(p integer) returns integer language sql as $$ select one() + p $$;`;

  it('is loaded after the migrations, in any order, and again only if it differs', async () => {
    expect(await pending([base], { functions: setOf(two, one) })).toEqual([base.name, 'functions']);
    expect(await load(setOf(two, one))).toEqual([base.name, 'functions']);
    expect(await load(setOf(two, one))).toEqual([]);
    expect(await pending([base], { functions: setOf(two, one) })).toEqual([]);
    const changed = setOf(two, one.replace('1', '2'));
    expect(await pending([base], { functions: changed })).toEqual(['functions']);
    expect(await load(changed)).toEqual(['functions']);
    expect(await ask(sql`select millrace.one()`)).toEqual([{ one: 2 }]);
  });

  it('drops what it no longer has or declares otherwise, and leaves functions of others alone', async () => {
    await load(setOf(one, two));
    await withClient(fresh.address, (client) =>
      client.query('create function millrace.own() returns integer language sql return 7'),
    );
    await load(setOf(two.replace('integer)', 'bigint, q text)').replace('returns integer', 'returns bigint')));
    expect(await declared()).toEqual(['own() integer', 'two(p bigint, q text) bigint']);
  });

  it('keeps privileges and views on functions whose declaration stays', async () => {
    await load(setOf(one));
    await withClient(fresh.address, async (client) => {
      await client.query('revoke execute on function millrace.one from public');
      await client.query('create view public.seen as select millrace.one()');
    });
    await load(setOf(one.replace('1', '2')));
    expect(await ask(sql`select one from public.seen`)).toEqual([{ one: 2 }]);
    expect(
      await ask(sql`
      select proacl::text like '%{=X%' as open from pg_proc where proname = 'one'`),
    ).toEqual([{ open: false }]);
  });

  it('that fails leaves everything as it was', async () => {
    await load(setOf(one));
    const bad = setOf(two, 'bad() returns nothing language sql as $$ $$;');
    await expect(load(bad, { version: '2.0.0' })).rejects.toThrow('replacing the SQL functions failed');
    expect([await declared(), await version()]).toEqual([['one() integer'], '1.0.0']);
  });

  it('of a newer release stays in the control database when an older release starts', async () => {
    const control = { schema: 'control' } as const;
    const ours = (text: string): FunctionSet => {
      const { names, checksum, text: script } = setOf(text);
      return { names, checksum, text: script.replaceAll('millrace', 'control') };
    };
    await load(ours(one), { ...control, version: '1.0.1' });
    expect(await load(ours(two), control)).toEqual([]);
    expect(await declared('control')).toEqual(['one() integer']);
    expect(await load(ours(two), { ...control, version: '1.0.1' })).toEqual(['functions']);
  });
});

describe('what is pending', () => {
  it('is everything where nothing is installed, and asking makes nothing', async () => {
    expect(await pending([one, two])).toEqual([one.name, two.name]);
    expect(await ask(sql`select 1 from pg_namespace where nspname = 'millrace'`)).toEqual([]);
  });

  it('is what the next run applies', async () => {
    await run([one]);
    expect(await pending([one, two], { version: '1.1.0' })).toEqual([two.name]);
    expect(await run([one, two], { version: '1.1.0' })).toEqual([two.name]);
    expect(await pending([one, two], { version: '1.1.0' })).toEqual([]);
  });
});

describe('reading migrations', () => {
  it('takes them in the order of their numbers, and refuses a gap', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-migrations-'));
    await writeFile(join(folder, '0002_b.sql'), 'select 2');
    await writeFile(join(folder, '0001_a.sql'), 'select 1');
    await writeFile(join(folder, 'README.md'), 'not one');
    await writeFile(join(folder, 'former-checksums.json'), '{ "0001_a.sql": ["abc"] }');
    expect((await readMigrations(folder)).map(({ number, text }) => [number, text])).toEqual([
      [1, 'select 1'],
      [2, 'select 2'],
    ]);
    expect((await readMigrations(folder))[0]?.formerChecksums).toEqual(['abc']);
    await writeFile(join(folder, '0004_d.sql'), 'select 4');
    await expect(readMigrations(folder)).rejects.toThrow('0004_d.sql should be number 3');
    await rm(folder, { recursive: true });
  });
});
