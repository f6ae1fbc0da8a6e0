/**
 * Calling a tenant otherwise. A database that bears the tenant's name is renamed with it, in the same transaction as the
 * row: both happen or neither. Renaming tolerates no session in the database, so a RESTART goes out first, and waits for that
 * transaction; if it fails, everything is as before and the launcher starts the tenant again by itself.
 */
import type { Client } from 'pg';
import { isInUse, MillraceError, sqlStateOf } from '../../errors.ts';
import { type Db, onClient, sql } from '../../kernel/sql.ts';
import { quoted } from '../../postgres/databases.ts';
import { terminateHolders } from '../../postgres/drained.ts';
import {
  type Actor,
  exclusively,
  existing,
  forgetKeys,
  heard,
  type Life,
  record,
  refuseDatabase,
  refuseDefault,
  tell,
} from './life.ts';
import * as queries from './queries.ts';

const duplicateDatabase = '42P04';

export async function renameTenant(life: Life, name: string, to: { readonly name: string } & Actor): Promise<void> {
  refuseDefault(name, 'renamed');
  await exclusively(life, [name, to.name], async (client) => {
    const row = await existing(life, name);
    if (to.name === name) return;
    const database = row.database === name ? to.name : row.database;
    refuseDatabase(life, database, 'body.name');
    await refuseTaken(life, row, { name: to.name, database });
    const renaming = { life, client, row, to: { name: to.name, database }, actor: to.actor };
    try {
      await rename(renaming);
    } catch (error) {
      if (!isInUse(error)) throw told(error, database);
      // those of ours who did not hear the hint
      await terminateHolders(life.control, { name: row.database });
      await rename(renaming).catch(async (again: unknown) => {
        throw isInUse(again) ? await inUse(life, row, again) : told(again, database);
      });
    } finally {
      heard(life, row.id);
    }
    forgetKeys(life);
  });
}

async function refuseTaken(life: Life, row: queries.LifeRow, to: { name: string; database: string }): Promise<void> {
  if ((await queries.findLifeRow(life.control, to.name)) !== undefined)
    throw new MillraceError('conflict', `there is a tenant ${to.name} already`);
  if (to.database !== row.database && (await queries.databaseNamed(life.control, to.database)) !== undefined)
    throw new MillraceError('conflict', `there is a database ${to.database} already`);
}

interface Renaming {
  readonly life: Life;
  readonly client: Client;
  readonly row: queries.LifeRow;
  readonly to: { readonly name: string; readonly database: string };
  readonly actor: string;
}

/** PostgreSQL waits five seconds for sessions to leave the database. */
function rename({ life, client, row, to, actor }: Renaming): Promise<void> {
  return onClient(client).transaction(async (tx) => {
    const transaction = await whoAmI(tx);
    await tell(life, row, { kind: 'restart', cause: `rename to ${to.name}`, actor, transaction });
    if (to.database !== row.database)
      await client.query(`alter database ${quoted(row.database)} rename to ${quoted(to.database)}`);
    if (!(await queries.renameTenant(tx, row.id, to)))
      throw new MillraceError('not_found', `there is no tenant ${row.name} any more`);
    const body = { name: to.name, from: row.name, to: to.name, database: to.database };
    await record(life, tx, { type: 'tenant.renamed', tenantId: row.id, body, actor });
  });
}

function whoAmI(tx: Db): Promise<{ xid: string; pid: number }> {
  return tx.one(sql`select pg_current_xact_id()::text as xid, pg_backend_pid() as pid`);
}

/** What came between our look and the statement. */
function told(error: unknown, database: string): unknown {
  if (sqlStateOf(error) !== duplicateDatabase) return error;
  return new MillraceError('conflict', `there is a database ${database} already`, { cause: error });
}

async function inUse(life: Life, { database }: queries.LifeRow, cause: unknown): Promise<MillraceError> {
  const holders = await queries.whoHolds(life.control, database);
  const held = holders.length === 0 ? 'somebody' : holders.join(', ');
  return new MillraceError('conflict', `the database ${database} cannot be renamed while ${held} uses it`, { cause });
}
