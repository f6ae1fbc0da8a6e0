/**
 * Migrations: forward only, numbered, checksummed, all in one transaction, followed by the set of functions
 * (`function-set.ts`) where it differs. There are two sets of both, `control` and `tenant`. Each database records its
 * migrations and, in `installation`, the version that wrote it and the checksum of its functions.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClientBase, QueryResult } from 'pg';
import { z } from 'zod';
import { functionsStep } from '../contract/engine.ts';
import { isMissingTable, MillraceError } from '../errors.ts';
import { type Db, onClient, sql } from '../kernel/sql.ts';
import { isNewer } from '../kernel/text/version.ts';
import type { FunctionSet } from './function-set.ts';
import { locks } from './locks.ts';

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly text: string;
  readonly checksum: string;
  /** Checksums of earlier contents that made the same tables: `former-checksums.json` beside the migrations. */
  readonly formerChecksums?: readonly string[] | undefined;
}

export async function readMigrations(folder: string): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort();
  const read = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')));
  const former = await readFormerChecksums(folder);
  return names.map((name, i) => ({ ...migration(name, read[i] ?? '', i + 1), formerChecksums: former[name] }));
}

/** Until 0.2.0, migrations created functions. They lost them, so the first ten have another content than 0.1.0 applied. */
async function readFormerChecksums(folder: string): Promise<Readonly<Record<string, readonly string[]>>> {
  const text = await readFile(join(folder, 'former-checksums.json'), 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '{}';
    throw error;
  });
  return formerShape.parse(JSON.parse(text));
}

const formerShape = z.record(z.string(), z.array(z.string()));

/** Whether a migration that was applied with this checksum is this one. */
export function hasChecksum({ checksum, formerChecksums = [] }: Migration, applied: string): boolean {
  return checksum === applied || formerChecksums.includes(applied);
}

function migration(name: string, text: string, expected: number): Migration {
  const number = Number(name.slice(0, 4));
  if (number !== expected) throw new Error(`migration ${name} should be number ${expected}`);
  return { number, name, text, checksum: createHash('sha256').update(text).digest('hex') };
}

export interface MigrateOptions {
  readonly schema: 'control' | 'millrace';
  readonly migrations: readonly Migration[];
  /** Undefined: the migrations create the functions, or there are none. */
  readonly functions?: FunctionSet | undefined;
  readonly version: string;
}

/** Migrates a database. Returns the names of the applied migrations. The client must have no open transaction. */
export function migrate(client: ClientBase, options: MigrateOptions): Promise<string[]> {
  return onClient(client).transaction(async (tx) => {
    await tx.exec(sql`select pg_advisory_xact_lock(${locks.migrate[0]}::integer, ${locks.migrate[1]}::integer)`);
    return migrateWithin(client, tx, options);
  });
}

/** The same in a transaction of the caller, which prevents concurrent migrations. */
export async function migrateWithin(client: ClientBase, tx: Db, options: MigrateOptions): Promise<string[]> {
  await prepare(client, options.schema);
  const [installed] = await tx.rows<Installed>(sql`
    select version, to_jsonb(installation) ->> 'functions_checksum' as functions from installation`);
  refuseDowngrade(options, installed?.version);
  const pending = unapplied(options.migrations, await recorded(tx));
  const functions = staleFunctions(options, installed);
  if (pending.length === 0 && functions === undefined && installed && isServed(options, installed.version)) return [];
  for (const item of pending) await apply(client, tx, item);
  await tx.exec(sql`
    insert into installation (singleton, version)
    values (true, ${options.version})
    on conflict (singleton) do update set version = excluded.version, updated_at = clock_timestamp()`);
  if (functions !== undefined) await replaceFunctions(client, functions);
  return namesOf(pending, functions);
}

/** The column `functions_checksum` came with 0.2.0; as JSON, a row without it has null there. */
type Installed = { version: string; functions: string | null };

/** The set of functions that has to be loaded. In the control database, an older release leaves a newer one's alone. */
function staleFunctions(
  { schema, version, functions }: MigrateOptions,
  installed: Installed | undefined,
): FunctionSet | undefined {
  if (functions === undefined || functions.checksum === installed?.functions) return undefined;
  return schema === 'control' && installed && isNewer(installed.version, version) ? undefined : functions;
}

function namesOf(pending: readonly Migration[], functions: FunctionSet | undefined): string[] {
  return [...pending.map(({ name }) => name), ...(functions === undefined ? [] : [functionsStep])];
}

/**
 * Whether the recorded version stays. A tenant's version names its engine exactly. In the control database, an older release
 * that knows all migrations does not overwrite the version of a newer one.
 */
function isServed({ schema, version }: MigrateOptions, installed: string): boolean {
  return schema === 'millrace' ? installed === version : !isNewer(version, installed);
}

/** What `migrate` would do; rejects as it would. Changes nothing. It takes one round trip, because each start of a scheduler calls it. */
export async function pendingMigrations(client: ClientBase, options: MigrateOptions): Promise<string[]> {
  const { schema, migrations } = options;
  try {
    const [installed, done] = (await client.query(`
      select version, to_jsonb(installation) ->> 'functions_checksum' as functions from ${schema}.installation;
      select number, name, checksum from ${schema}.migration order by number`)) as unknown as [
      QueryResult<Installed>,
      QueryResult<Recorded>,
    ];
    refuseDowngrade(options, installed.rows[0]?.version);
    return namesOf(unapplied(migrations, done.rows), staleFunctions(options, installed.rows[0]));
  } catch (error) {
    if (!isMissingTable(error)) throw error;
    return namesOf(migrations, options.functions);
  }
}

/** For tenants only: an older engine does not know what a newer one wrote. Processes of several releases share a control database. */
function refuseDowngrade({ schema, version }: MigrateOptions, installed: string | undefined): void {
  if (schema !== 'millrace' || installed === undefined || !isNewer(installed, version)) return;
  throw new MillraceError('conflict', `the tenant is at ${installed}; engine ${version} is older`);
}

/** Whether a tenant's database has a schema of Millrace, or remains of one. */
export async function hasMigrations(client: ClientBase): Promise<boolean> {
  const { there } = await onClient(client).one<{ there: boolean }>(sql`
    select to_regclass('millrace.migration') is not null as there`);
  return there;
}

/** Refuses a schema with foreign objects: Millrace would treat them as its own, and drop them with the schema. */
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

/** Creates only what is missing: `if not exists` requires the privilege to create even if the object exists. */
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

async function replaceFunctions(client: ClientBase, { text }: FunctionSet): Promise<void> {
  try {
    await client.query(text);
  } catch (error) {
    throw new Error('replacing the SQL functions failed', { cause: error });
  }
}

type Recorded = { number: number; name: string; checksum: string };

function recorded(tx: Db): Promise<Recorded[]> {
  return tx.rows<Recorded>(sql`select number, name, checksum from migration order by number`);
}

/** The migrations that are still to be applied. Rejects a database with newer migrations or another history. */
function unapplied(migrations: readonly Migration[], done: readonly Recorded[]): Migration[] {
  for (const row of done) {
    const ours = migrations[row.number - 1];
    if (ours === undefined) {
      throw new MillraceError(
        'bad_configuration',
        `the database has migration ${row.name}, which this version does not know: it was written by a newer one`,
      );
    }
    if (!hasChecksum(ours, row.checksum)) {
      throw new MillraceError(
        'bad_configuration',
        `migration ${row.name} was applied with another content than ${ours.name} has here`,
      );
    }
  }
  return migrations.slice(done.length);
}
