/** Installing, upgrading and removing: what is done in a transaction in which no engine touches the tenant. */
import { Client, type ClientBase } from 'pg';
import type { Engine } from '../contract/engine.ts';
import { isLockTimeout, MillraceError } from '../errors.ts';
import { type Db, onClient, sql } from '../kernel/sql.ts';
import { isNewer } from '../kernel/text/version.ts';
import { type Address, clientConfig } from '../postgres/address.ts';
import { proveDatabase } from '../postgres/databases.ts';
import { drained, type Drained, graceMs, usualLockMs } from '../postgres/drained.ts';
import { locks } from '../postgres/locks.ts';
import { notForgotten } from '../postgres/pool/pool.ts';
import type { Engines } from '../loader/engines/engines.ts';
import { holdersOfTables, nameHolders } from '../control/blockers.ts';
import { formatFreeing } from '../control/format-reason.ts';

/** Those who have to leave are told. */
export interface Telling {
  readonly onBegin: (who: Drained) => Promise<void>;
  readonly remind: () => void;
  /** How long somebody's lock on a table is waited for. */
  readonly lockMs?: number | undefined;
}

const nobody: Telling = { onBegin: async () => {}, remind: () => {} };

/** Answers the names of what was applied. `onBegin` is told the transaction before anybody has to leave. */
export function migrateTenant(address: Address, engine: Engine, telling: Partial<Telling> = {}): Promise<string[]> {
  return onConnection(address, (client) => migrateOn(client, engine, { ...nobody, ...telling }));
}

/** Work in such a transaction, on a connection of its own. */
export function inDrained<T>(address: Address, telling: Telling, work: (client: ClientBase) => Promise<T>): Promise<T> {
  return onConnection(address, (client) => drainedOn(client, telling, work));
}

function migrateOn(client: Client, engine: Engine, telling: Telling): Promise<string[]> {
  return drainedOn(client, telling, (inner) => engine.migrate(inner));
}

function drainedOn<T>(client: Client, telling: Telling, work: (client: ClientBase) => Promise<T>): Promise<T> {
  return drained(client, { ...telling, graceMs }, (inner, tx) =>
    // in a savepoint: no engine comes back, and is taken for who was in the way, before we have seen who it is
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

/** Whether `migrateTenant` would find anything to do. Locks nothing: a start of many processes disturbs nobody. */
export function pendingMigrations(address: Address, engine: Engine): Promise<string[]> {
  return onConnection(address, (client) => engine.pending(client));
}

export interface Ensuring {
  readonly engines: Pick<Engines, 'has'>;
  readonly onUpgrade?: ((from: string) => void) | undefined;
  /** How long whoever is changing the tenant is waited for. */
  readonly lockMs: number;
}

/**
 * What every start does to the default tenant: installs it where it is not. Where nothing here could serve it, and somebody
 * listens (`onUpgrade`), it is brought to this release; else it stays as it is. Any number may do this at once; who finds
 * nothing to do disturbs nobody, and is kept by nobody.
 */
export function ensureInstalled(
  address: Address,
  engine: Engine,
  { engines, onUpgrade, lockMs }: Ensuring,
): Promise<string[]> {
  const isDone = async (recorded: string | undefined): Promise<boolean> =>
    recorded !== undefined &&
    (onUpgrade === undefined || isNewer(recorded, engine.version) || (await engines.has(recorded)));
  return onConnection(address, async (client) => {
    const db = onClient(client);
    await db.exec(sql`select set_config('lock_timeout', ${`${lockMs}ms`}, false)`);
    if (await isDone(await recordedVersion(client))) return [];
    // kept until we are gone: those who come meanwhile look only when there is nothing left to do
    await db.exec(sql`select pg_advisory_lock(${locks.migrate[0]}::integer, ${locks.migrate[1]}::integer)`);
    const recorded = await recordedVersion(client);
    if (await isDone(recorded)) return [];
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
    await client.query(notForgotten('millrace'));
    await proveDatabase(client, address);
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
