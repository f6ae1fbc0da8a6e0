/**
 * Work in a transaction in which no engine touches the tenant: installing, upgrading and removing Millrace. The transaction
 * holds `drain` (`postgres/drained.ts`). If the work waits for a table in vain, the error names the sessions that hold it.
 */
import { Client, type ClientBase } from 'pg';
import { isLockTimeout, MillraceError } from '../errors.ts';
import type { Db } from '../kernel/sql.ts';
import { type Address, clientConfig } from '../postgres/address.ts';
import { proveDatabase } from '../postgres/databases.ts';
import { drained, type Drained, graceMs, usualLockMs } from '../postgres/drained.ts';
import { notForgotten } from '../postgres/pool/pool.ts';
import { holdersOfTables, nameHolders } from '../control/blockers.ts';
import { formatFreeing } from '../control/format-reason.ts';

/** How the processes that use the tenant are asked to leave. */
export interface Telling {
  readonly onBegin: (who: Drained) => Promise<void>;
  readonly remind: () => void;
  /** How long to wait for a lock that another session holds on a table. */
  readonly lockMs?: number | undefined;
}

/** On a connection of its own. */
export function inDrained<T>(address: Address, telling: Telling, work: (client: ClientBase) => Promise<T>): Promise<T> {
  return onConnection(address, (client) => drainedOn(client, telling, work));
}

export function drainedOn<T>(client: Client, telling: Telling, work: (client: ClientBase) => Promise<T>): Promise<T> {
  return drained(client, { ...telling, graceMs }, (inner, tx) =>
    // in a savepoint: it keeps engines out until the holders of tables are read
    tx
      .transaction(() => work(inner))
      .catch(async (error: unknown) => {
        throw isLockWait(error) ? await gaveUp(tx, error, telling.lockMs) : error;
      }),
  );
}

/** By itself, or as why a migration failed. */
function isLockWait(error: unknown): error is Error {
  return error instanceof Error && (isLockTimeout(error) || isLockTimeout(error.cause));
}

async function gaveUp(tx: Db, error: Error, lockMs = usualLockMs): Promise<MillraceError> {
  const holders = await holdersOfTables(tx, lockMs).catch(() => []);
  const what = isLockTimeout(error) ? '' : `${error.message}: `;
  const whose =
    holders.length === 0
      ? 'nobody has tables of the schema millrace open now; try again'
      : `tables of the schema millrace are held by ${nameHolders(holders)}; ${formatFreeing(holders)}, or try again later`;
  const detail = `${what}a lock was waited for in vain, for ${lockMs / 1_000} s, and nothing was changed; ${whose}`;
  return new MillraceError('conflict', detail, { cause: error });
}

export async function onConnection<T>(address: Address, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(clientConfig(address, 'millrace migration'));
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query(notForgotten('millrace'));
    await proveDatabase(client, address);
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
