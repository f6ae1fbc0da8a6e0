/** Creates missing databases, and checks that a database is the intended one. If the role may not create one, the error names the statement to run. */
import { Client, type ClientBase } from 'pg';
import { MillraceError, sqlStateOf } from '../errors.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { type Address, clientConfig, describe, onDatabase, refuseOther } from './address.ts';

const noSuchDatabase = '3D000';
const alreadyThere = new Set(['42P04', '23505']);
const notAllowed = '42501';

/** Returns whether this call has created it. */
export async function ensureDatabase(address: Address): Promise<boolean> {
  if (await exists(address)) return false;
  const statement = `create database ${quoted(address.database)} encoding 'UTF8' template template0`;
  try {
    await withClient(onDatabase(address, 'postgres'), (client) => client.query(statement));
  } catch (error) {
    // several processes may start at once; one of them creates it
    if (alreadyThere.has(sqlStateOf(error) ?? '')) return false;
    if (sqlStateOf(error) !== notAllowed) throw error;
    throw new MillraceError(
      'bad_configuration',
      `${describe(address)} does not exist and this role may not make it; run: ${statement}`,
      { cause: error },
    );
  }
  return true;
}

/** Creates all that are missing. One error names all that cannot be created, each with the statement to run. */
export async function ensureDatabases(addresses: readonly Address[]): Promise<void> {
  const results = await Promise.allSettled(addresses.map((address) => ensureDatabase(address)));
  const reasons = results.flatMap((result): unknown[] => (result.status === 'rejected' ? [result.reason] : []));
  const known = reasons.filter((reason) => reason instanceof MillraceError);
  if (known.length > 1) throw new MillraceError('bad_configuration', known.map((reason) => reason.message).join('\n'));
  if (reasons.length > 0) throw reasons[0];
}

async function exists(address: Address): Promise<boolean> {
  try {
    await withClient(address, async () => {});
    return true;
  } catch (error) {
    if (sqlStateOf(error) === noSuchDatabase) return false;
    throw error;
  }
}

export async function withClient<T>(address: Address, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(clientConfig(address, 'millrace setup'));
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Checks on its own connection, because another database may have got the name since an earlier check. */
export async function proveDatabase(client: ClientBase, address: Address): Promise<void> {
  const { oid } = await onClient(client).one<{ oid: number }>(sql`
    select oid from pg_database where datname = current_database()`);
  refuseOther(address, oid);
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
