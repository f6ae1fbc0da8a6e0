import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { textWith } from '../../test/harness/expected.ts';
import { type FreshDatabase, freshAddress, makeFreshDatabase } from '../../test/harness/fresh-database.ts';
import { until } from '../../test/harness/until.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { ensureDatabase, withClient } from './databases.ts';
import { locks } from './locks.ts';
import { migrate, type MigrateOptions, type Migration, readMigrations } from './migrate.ts';

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

function run(migrations: readonly Migration[], more: Partial<MigrateOptions> = {}): Promise<number> {
  const options: MigrateOptions = { schema: 'millrace', migrations, version: '1', drain: false, ...more };
  return withClient(fresh.address, (client) => migrate(client, options));
}

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
    expect(await run([one])).toBe(1);
    expect(await run([one])).toBe(0);
    expect(await run([one, two], { version: '2' })).toBe(1);
    expect(await tables()).toEqual(['a', 'b', 'installation', 'migration']);
    expect(await version()).toBe('2');
  });

  it('records a newer version although there is nothing to apply', async () => {
    await run([one]);
    expect(await run([one], { version: '1.1' })).toBe(0);
    expect(await version()).toBe('1.1');
  });

  it('happens once when ten processes make and migrate the same database at once', async () => {
    const missing = freshAddress();
    const starting = Array.from({ length: 10 }, async () => {
      const made = await ensureDatabase(missing.address);
      const applied = await withClient(missing.address, (client) =>
        migrate(client, { schema: 'millrace', migrations: [one, two], version: '1', drain: true }),
      );
      return { made, applied };
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
    expect(await run([one, two])).toBe(2);
  });

  it('refuses a migration whose content has changed since', async () => {
    await run([one, two]);
    await expect(run([one, step(2, 'create table c (id integer)')])).rejects.toMatchObject({
      code: 'bad_configuration',
      message: textWith('0002_step.sql'),
    });
    expect(await tables()).not.toContain('c');
  });

  it('refuses a database that a newer version wrote, and leaves its version alone', async () => {
    await run([one, two], { version: '2' });
    await expect(run([one], { version: '1' })).rejects.toMatchObject({ code: 'bad_configuration' });
    expect(await version()).toBe('2');
  });

  it('of a tenant waits until no connection of any engine is left (I6)', async () => {
    await run([one]);
    let granted = false;
    let migrating: Promise<unknown> = Promise.resolve();
    await withClient(fresh.address, async (client) => {
      const [space, drain] = locks.drain;
      await client.query('select pg_advisory_lock_shared($1::integer, $2::integer)', [space, drain]);
      migrating = run([one, two], { version: '2', drain: true }).then(() => (granted = true));
      await until('the migration waits for the lock', async () => {
        const waiting = await ask(sql`
          select 1 from pg_locks
           where locktype = 'advisory' and classid = ${space} and objid = ${drain} and objsubid = 2 and not granted
             and database = (select oid from pg_database where datname = current_database())`);
        return waiting.length > 0 || undefined;
      });
      expect(granted).toBe(false);
      expect(await version()).toBe('1');
    });
    await migrating;
    expect(await version()).toBe('2');
  });

  it('asks no old connection to leave when there is nothing to do', async () => {
    await run([one]);
    await withClient(fresh.address, async (client) => {
      const [space, drain] = locks.drain;
      await client.query('select pg_advisory_lock_shared($1::integer, $2::integer)', [space, drain]);
      expect(await run([one], { drain: true })).toBe(0);
    });
  });
});

describe('reading migrations', () => {
  it('takes them in the order of their numbers, and refuses a gap', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-migrations-'));
    await writeFile(join(folder, '0002_b.sql'), 'select 2');
    await writeFile(join(folder, '0001_a.sql'), 'select 1');
    await writeFile(join(folder, 'README.md'), 'not one');
    expect((await readMigrations(folder)).map(({ number, text }) => [number, text])).toEqual([
      [1, 'select 1'],
      [2, 'select 2'],
    ]);
    await writeFile(join(folder, '0004_d.sql'), 'select 4');
    await expect(readMigrations(folder)).rejects.toThrow('0004_d.sql should be number 3');
    await rm(folder, { recursive: true });
  });
});
