/**
 * Pools of connections. Every connection is set up the same way before its first use: schema, UTC, a limit on forgotten
 * transactions. A connection through a transaction pooler is refused: advisory locks and LISTEN would silently break.
 */
import { type ClientBase, Pool, types } from 'pg';
import { MillraceError } from '../errors.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { type Address, clientConfig, describe } from './address.ts';
import { locks } from './locks.ts';

type TypeId = Parameters<typeof types.getTypeParser>[0];

/** bigint columns are sequence numbers and milliseconds, all far below 2^53. */
function parser(oid: TypeId, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === types.builtins.INT8 && format !== 'binary') return Number;
  return types.getTypeParser(oid, 'text');
}

const typeParsers = { getTypeParser: parser as typeof types.getTypeParser };

export interface PoolOptions {
  readonly address: Address;
  readonly schema: 'control' | 'millrace';
  readonly application: string;
  readonly max: number;
  readonly allowPooler: boolean;
  /** More to do on a new connection; a rejection closes it. */
  readonly onOpen?: (client: ClientBase) => Promise<void>;
  readonly onError: (error: Error) => void;
}

export function openPool(options: PoolOptions): Pool {
  const pool = new Pool({
    ...clientConfig(options.address, options.application),
    max: options.max,
    idleTimeoutMillis: 10_000,
    connectionTimeoutMillis: 10_000,
    types: typeParsers,
    ...onConnect((client) => setUp(client, options)),
  });
  // an idle connection that is lost is only an event; unheard, it would end the process
  pool.on('error', options.onError);
  return pool;
}

/** The pool waits for the promise before it hands the connection out; its types do not say so. */
function onConnect(hook: (client: ClientBase) => Promise<void>): object {
  return { onConnect: hook };
}

export async function setUp(client: ClientBase, options: Omit<PoolOptions, 'max' | 'onError'>): Promise<void> {
  await client.query(`
    set search_path to ${options.schema};
    set timezone to 'UTC';
    set idle_in_transaction_session_timeout to '60s'`);
  if (!options.allowPooler) await refusePooler(client, options.address);
  await options.onOpen?.(client);
}

async function refusePooler(client: ClientBase, address: Address): Promise<void> {
  const { pid } = await onClient(client).one<{ pid: number }>(sql`select pg_backend_pid() as pid`);
  const announced: unknown = Reflect.get(client, 'processID');
  if (announced === pid) return;
  throw new MillraceError(
    'bad_configuration',
    `${describe(address)} is behind a connection pooler; Millrace needs direct or session-pooled connections. ` +
      'If it pools by session, set MILLRACE_SESSION_POOLER=true',
  );
}

/** The connection's engine is not the one its tenant is recorded with: the loader must be asked again. */
export class VersionMismatch extends Error {
  override readonly name = 'VersionMismatch';
  readonly recorded: string;

  constructor(recorded: string) {
    super(`the tenant is at version ${recorded}`);
    this.recorded = recorded;
  }
}

/**
 * What every connection of an engine to a tenant does first (I6): take `drain` shared, waiting out a migration, and
 * then, in a statement of its own so that it sees what that migration committed, look at the version.
 */
export function guardVersion(engineVersion: string): (client: ClientBase) => Promise<void> {
  return async (client) => {
    const db = onClient(client);
    await db.exec(sql`select pg_advisory_lock_shared(${locks.drain[0]}::integer, ${locks.drain[1]}::integer)`);
    const { version } = await db.one<{ version: string }>(sql`select version from installation`);
    if (version !== engineVersion) throw new VersionMismatch(version);
  };
}
