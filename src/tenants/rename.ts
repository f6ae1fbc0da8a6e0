/**
 * Renames a tenant. A database of the same name is renamed with it, in the same transaction as the row. PostgreSQL renames a
 * database only if it has no sessions, so a RESTART is sent first, and waits for the end of that transaction. If the
 * transaction fails, nothing has changed, and the launcher starts the tenant again. The database is found by its oid, in case
 * it was renamed meanwhile.
 */
import type { Client } from 'pg';
import { isInUse, isUniqueViolation, MillraceError, sqlStateOf } from '../errors.ts';
import { type Db, onClient, sql } from '../kernel/sql.ts';
import { quoted } from '../postgres/databases.ts';
import { terminateHolders } from '../postgres/drained.ts';
import { makeRenamedBody } from '../launcher/discovery/discovery.ts';
import {
  type Actor,
  exclusively,
  requireTenant,
  forgetKeys,
  announceChange,
  type Life,
  record,
  refuseDatabase,
  explainRefusal,
  refuseDefault,
  sendOrder,
} from './life.ts';
import * as queries from './queries.ts';

const duplicateDatabase = '42P04';

export async function renameTenant(life: Life, name: string, to: { readonly name: string } & Actor): Promise<void> {
  refuseDefault(name, 'renamed');
  await exclusively(life, [name, to.name], async (client) => {
    const row = await withDatabase(life, await requireTenant(life, name));
    if (to.name === name) return;
    const database = row.database === name ? to.name : row.database;
    refuseDatabase(life, database, 'body.name');
    await refuseTaken(life, row, { name: to.name, database });
    const renaming = { life, client, row, to: { name: to.name, database }, actor: to.actor };
    try {
      await rename(renaming);
    } catch (error) {
      if (!isInUse(error)) throw await explainFailure(renaming, error);
      // ends our own sessions that did not leave when they were notified
      await terminateHolders(life.control, { name: row.database });
      await rename(renaming).catch(async (again: unknown) => {
        throw await explainFailure(renaming, again);
      });
    } finally {
      announceChange(life, row.id);
    }
    forgetKeys(life);
  });
}

/** Replaces the recorded name of the database by its current one, which the launcher may not have noted yet. */
async function withDatabase(life: Life, row: queries.LifeRow): Promise<queries.LifeRow> {
  const there = await queries.databaseOf(life.control, row);
  if (there !== undefined) return { ...row, database: there.name, databaseOid: there.oid };
  throw new MillraceError(
    'conflict',
    `the database ${row.database} of tenant ${row.name} does not exist; \`millrace tenant drop ${row.name}\` removes the tenant`,
  );
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
    const transaction = await currentTransaction(tx);
    await sendOrder(life, row, { kind: 'restart', cause: `rename to ${to.name}`, actor, transaction });
    if (to.database !== row.database)
      await client.query(`alter database ${quoted(row.database)} rename to ${quoted(to.database)}`);
    if (!(await queries.renameTenant(tx, row, to)))
      throw new MillraceError('conflict', `tenant ${row.name} or its database has just been changed; try again`);
    await record(life, tx, { type: 'tenant.renamed', tenantId: row.id, body: makeRenamedBody(row, to), actor });
  });
}

function currentTransaction(tx: Db): Promise<{ xid: string; pid: number }> {
  return tx.one(sql`select pg_current_xact_id()::text as xid, pg_backend_pid() as pid`);
}

/** Explains errors that are caused by changes between our checks and the statement. */
async function explainFailure({ client, row, to }: Renaming, error: unknown): Promise<unknown> {
  if (sqlStateOf(error) === duplicateDatabase)
    return new MillraceError('conflict', `there is a database ${to.database} already`, { cause: error });
  if (isUniqueViolation(error))
    return new MillraceError(
      'conflict',
      `the name ${to.name} or the database ${to.database} belongs to another tenant`,
    );
  return explainRefusal(client, { database: row.database, what: 'renamed' }, error);
}
