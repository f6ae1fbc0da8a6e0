/**
 * Migrations: forward only, numbered, checksummed, all in one transaction. Two sets, `control` and `tenant`; each
 * database records which it has and, in `installation`, the version that wrote it.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClientBase, QueryResult } from 'pg';
import { isMissingTable, MillraceError } from '../errors.ts';
import { type Db, onClient, sql } from '../kernel/sql.ts';
import { isNewer } from '../kernel/version.ts';
import { locks } from './locks.ts';

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly text: string;
  readonly checksum: string;
}

export async function readMigrations(folder: string): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  const read = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  return names.map((name, i) => migration(name, read[i] ?? '', i + 1));
}

function migration(name: string, text: string, expected: number): Migration {
  const number = Number(name.slice(0, 4));
  if (number !== expected) throw new Error(`migration ${name} should be number ${expected}`);
  return { number, name, text, checksum: createHash('sha256').update(text).digest('hex') };
}

export interface MigrateOptions {
  readonly schema: 'control' | 'millrace';
  readonly migrations: readonly Migration[];
  readonly version: string;
}

/** Brings one database up to date; answers the names of what was applied. The client must have no transaction open. */
export function migrate(client: ClientBase, options: MigrateOptions): Promise<string[]> {
  return onClient(client).transaction(async (tx) => {
    await tx.exec(sql`select pg_advisory_xact_lock(${locks.migrate[0]}::integer, ${locks.migrate[1]}::integer)`);
    return migrateWithin(client, tx, options);
  });
}

/** The same in a transaction of the caller's, who has seen to it that nobody else migrates. */
export async function migrateWithin(client: ClientBase, tx: Db, options: MigrateOptions): Promise<string[]> {
  await prepare(client, options.schema);
  const [installed] = await tx.rows<{ version: string }>(sql`select version from installation`);
  refuseDowngrade(options, installed?.version);
  const pending = unapplied(options.migrations, await recorded(tx));
  if (pending.length === 0 && installed && isServed(options, installed.version)) return [];
  for (const item of pending) await apply(client, tx, item);
  await tx.exec(sql`
    insert into installation (singleton, version)
    values (true, ${options.version})
    on conflict (singleton) do update set version = excluded.version, updated_at = clock_timestamp()`);
  return pending.map(({ name }) => name);
}

/**
 * Whether the version that is recorded may stay. A tenant's names its engine, to the letter; in the control database an
 * older release that happens to know all migrations leaves a newer one's alone.
 */
function isServed({ schema, version }: MigrateOptions, installed: string): boolean {
  return schema === 'millrace' ? installed === version : !isNewer(version, installed);
}

/** What `migrate` would apply; rejects as that would. Changes nothing. One round trip: each start of a scheduler asks. */
export async function pendingMigrations(client: ClientBase, options: MigrateOptions): Promise<string[]> {
  const { schema, migrations } = options;
  try {
    const [installed, done] = (await client.query(`
      select version from ${schema}.installation;
      select number, name, checksum from ${schema}.migration order by number`)) as unknown as [
      QueryResult<{ version: string }>,
      QueryResult<Recorded>,
    ];
    refuseDowngrade(options, installed.rows[0]?.version);
    return unapplied(migrations, done.rows).map(({ name }) => name);
  } catch (error) {
    if (!isMissingTable(error)) throw error;
    return migrations.map(({ name }) => name);
  }
}

/** A tenant has one engine, and an older one never knew what a newer one wrote. Processes of a release come in any order. */
function refuseDowngrade({ schema, version }: MigrateOptions, installed: string | undefined): void {
  if (schema !== 'millrace' || installed === undefined || !isNewer(installed, version)) return;
  throw new MillraceError('conflict', `the tenant is at ${installed}; engine ${version} is older`);
}

/** Whether there is a schema that Millrace has made in a tenant's database, or what is left of one. */
export async function hasMigrations(client: ClientBase): Promise<boolean> {
  const { there } = await onClient(client).one<{ there: boolean }>(sql`
    select to_regclass('millrace.migration') is not null as there`);
  return there;
}

/** What somebody else has put there would be taken for ours, and dropped with it some day. */
async function refuseForeign(client: ClientBase, schema: string): Promise<void> {
  const { found } = await onClient(client).one<{ found: string | null }>(sql`
    select min(relname) as found
      from pg_class
     where relnamespace = to_regnamespace(${schema})
       and to_regclass(${schema} || '.migration') is null and to_regclass(${schema} || '.installation') is null`);
  if (found === null) return;
  throw new MillraceError(
    'conflict',
    `the database has a schema ${schema} that is not Millrace's (it holds ${found}); rename or drop it`,
  );
}

/** What is there is not made again: "if not exists" asks for the right to make it first, which only a first start needs. */
async function prepare(client: ClientBase, schema: string): Promise<void> {
  await refuseForeign(client, schema);
  const { there } = await onClient(client).one<{ there: boolean }>(sql`
    select to_regclass(${schema} || '.installation') is not null
       and to_regclass(${schema} || '.migration') is not null as there`);
  if (there) await client.query(`set local search_path to ${schema}`);
  else await makeRecords(client, schema);
}

async function makeRecords(client: ClientBase, schema: string): Promise<void> {
  await client.query(`
    create schema if not exists ${schema};
    set local search_path to ${schema};
    create table if not exists installation (
      singleton boolean primary key check (singleton),
      version text not null,
      updated_at timestamptz not null default clock_timestamp()
    );
    create table if not exists migration (
      number integer primary key,
      name text not null,
      checksum text not null,
      applied_at timestamptz not null default clock_timestamp()
    )`);
}

async function apply(client: ClientBase, tx: Db, item: Migration): Promise<void> {
  try {
    await client.query(item.text);
  } catch (error) {
    throw new Error(`migration ${item.name} failed`, { cause: error });
  }
  await tx.exec(
    sql`insert into migration (number, name, checksum) values (${item.number}, ${item.name}, ${item.checksum})`,
  );
}

type Recorded = { number: number; name: string; checksum: string };

function recorded(tx: Db): Promise<Recorded[]> {
  return tx.rows<Recorded>(sql`select number, name, checksum from migration order by number`);
}

/** What is still to be applied; a database that is ahead of us, or whose past differs from ours, is left alone. */
function unapplied(migrations: readonly Migration[], done: readonly Recorded[]): Migration[] {
  for (const row of done) {
    const ours = migrations[row.number - 1];
    if (ours === undefined) {
      throw new MillraceError(
        'bad_configuration',
        `the database has migration ${row.name}, which this version does not know: it was written by a newer one`,
      );
    }
    if (ours.checksum !== row.checksum) {
      throw new MillraceError(
        'bad_configuration',
        `migration ${row.name} was applied with another content than ${ours.name} has here`,
      );
    }
  }
  return migrations.slice(done.length);
}
