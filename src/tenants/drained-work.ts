/**
 * Work in a transaction during which no engine touches the tenant: installing, upgrading and removing Millrace. The
 * transaction holds `drain` (`postgres/drained.ts`). If the work cannot lock a table in time, the error names the sessions
 * that hold it.
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

/** How the processes that use the tenant are notified that they must leave. */
export interface DrainHooks {
  readonly onBegin: (who: Drained) => Promise<void>;
  readonly remind: () => void;
  /** How long to wait for a lock that another session holds on a table. */
  readonly lockMs?: number | undefined;
}

/** Does the work on a connection of its own. */
export function inDrained<T>(
  address: Address,
  hooks: DrainHooks,
  work: (client: ClientBase) => Promise<T>,
): Promise<T> {
  return onConnection(address, (client) => drainedOn(client, hooks, work));
}

export function drainedOn<T>(client: Client, hooks: DrainHooks, work: (client: ClientBase) => Promise<T>): Promise<T> {
  return drained(client, { ...hooks, graceMs }, (inner, tx) =>
    // in a savepoint, so that engines are kept out until the holders of tables have been read
    tx
      .transaction(() => work(inner))
      .catch(async (error: unknown) => {
        throw isLockWait(error) ? await explainLockTimeout(tx, error, hooks.lockMs) : error;
      }),
  );
}

/** Whether the error, or its cause, is a lock timeout. */
function isLockWait(error: unknown): error is Error {
  return error instanceof Error && (isLockTimeout(error) || isLockTimeout(error.cause));
}

async function explainLockTimeout(tx: Db, error: Error, lockMs = usualLockMs): Promise<MillraceError> {
  const holders = await holdersOfTables(tx, lockMs).catch(() => []);
  const prefix = isLockTimeout(error) ? '' : `${error.message}: `;
  const advice =
    holders.length === 0
      ? 'no other session holds tables of the schema millrace now; try again'
      : `tables of the schema millrace are held by ${nameHolders(holders)}; ${formatFreeing(holders)}, or try again later`;
  const detail = `${prefix}a lock was not granted within ${lockMs / 1_000} s, and nothing was changed; ${advice}`;
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
