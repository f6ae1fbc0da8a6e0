/** Installing, upgrading and removing: what is done in a transaction in which no engine touches the tenant. */
import { Client, type ClientBase } from 'pg';
import type { Engine } from '../contract/engine.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { isNewer } from '../kernel/version.ts';
import { type Address, clientConfig } from '../postgres/address.ts';
import { proveDatabase } from '../postgres/databases.ts';
import { drained, type Drained, graceMs } from '../postgres/drained.ts';
import { locks } from '../postgres/locks.ts';
import type { Engines } from './engines.ts';

/** Those who have to leave are told. */
export interface Telling {
  readonly onBegin: (who: Drained) => Promise<void>;
  readonly remind: () => void;
}

const nobody: Telling = { onBegin: async () => {}, remind: () => {} };

/** Answers the names of what was applied. `onBegin` is told the transaction before anybody has to leave. */
export function migrateTenant(
  address: Address,
  engine: Engine,
  onBegin = nobody.onBegin,
  remind = nobody.remind,
): Promise<string[]> {
  return onConnection(address, (client) => migrateOn(client, engine, { onBegin, remind }));
}

/** Work in such a transaction, on a connection of its own. */
export function inDrained<T>(address: Address, telling: Telling, work: (client: ClientBase) => Promise<T>): Promise<T> {
  return onConnection(address, (client) => drained(client, { ...telling, graceMs }, work));
}

function migrateOn(client: Client, engine: Engine, telling: Telling): Promise<string[]> {
  return drained(client, { ...telling, graceMs }, (inner) => engine.migrate(inner));
}

/** Whether `migrateTenant` would find anything to do. Locks nothing: a start of many processes disturbs nobody. */
export function pendingMigrations(address: Address, engine: Engine): Promise<string[]> {
  return onConnection(address, (client) => engine.pending(client));
}

/**
 * What every start does to the default tenant: installs it where it is not. Where nothing here could serve it, and somebody
 * listens (`onUpgrade`), it is brought to this release; else it stays as it is. Any number may do this at once; who finds
 * nothing to do disturbs nobody.
 */
export function ensureInstalled(
  address: Address,
  engine: Engine,
  engines: Pick<Engines, 'has'>,
  onUpgrade?: (from: string) => void,
): Promise<string[]> {
  return onConnection(address, async (client) => {
    // kept until we are gone: those who come meanwhile look only when there is nothing left to do
    await onClient(client).exec(
      sql`select pg_advisory_lock(${locks.migrate[0]}::integer, ${locks.migrate[1]}::integer)`,
    );
    const recorded = await recordedVersion(client);
    const served = recorded !== undefined && (isNewer(recorded, engine.version) || (await engines.has(recorded)));
    if (served || (recorded !== undefined && onUpgrade === undefined)) return [];
    const applied = await migrateOn(client, engine, nobody);
    if (recorded !== undefined) onUpgrade?.(recorded);
    return applied;
  });
}

async function recordedVersion(client: ClientBase): Promise<string | undefined> {
  const db = onClient(client);
  const { there } = await db.one<{ there: boolean }>(sql`
    select to_regclass('millrace.installation') is not null as there`);
  if (!there) return undefined;
  return (await db.maybeOne<{ version: string }>(sql`select version from millrace.installation`))?.version;
}

export async function onConnection<T>(address: Address, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client(clientConfig(address, 'millrace migration'));
  client.on('error', () => {});
  await client.connect();
  try {
    await proveDatabase(client, address);
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
