/**
 * Pools of connections. Every connection is set up the same way before its first use: schema, UTC, no compilation of
 * plans, a limit on forgotten transactions. A connection through a transaction pooler is refused: advisory locks and
 * LISTEN would silently break.
 */
import { type Client, type ClientBase, Pool, types } from 'pg';
import { isLockTimeout, MillraceError, poolClosed } from '../../errors.ts';
import { within } from '../../kernel/service.ts';
import { type Address, clientConfig, describe, refuseOther } from '../address.ts';
import { budgetedClient, type ConnectionBudget, noteOpened } from './connection-budget.ts';
import { locks } from '../locks.ts';

type TypeId = Parameters<typeof types.getTypeParser>[0];

/** bigint columns are sequence numbers and milliseconds, all far below 2^53. */
function parser(oid: TypeId, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === types.builtins.INT8 && format !== 'binary') return Number;
  return types.getTypeParser(oid, 'text');
}

export const typeParsers = { getTypeParser: parser as typeof types.getTypeParser };

export interface PoolOptions {
  readonly address: Address;
  readonly schema: 'control' | 'millrace';
  readonly application: string;
  readonly max: number;
  /** A statement that is not answered by then fails, and its connection is given up; default: never. */
  readonly queryTimeoutMs?: number;
  readonly allowPooler: boolean;
  /** More to do on a new connection; a rejection closes it. */
  readonly onOpen?: (client: ClientBase) => Promise<void>;
  readonly onError: (error: Error) => void;
  /** How long a connection stays that nobody uses. */
  readonly idleMs?: number;
  /** What this process may have in all. */
  readonly budget?: ConnectionBudget | undefined;
}

const usualIdleMs = 10_000;

export function openPool(options: PoolOptions): Pool {
  const connected = new Set<ClientBase>();
  const pool = new Pool({
    ...clientConfig(options.address, cut(options.application)),
    max: options.max,
    idleTimeoutMillis: options.idleMs ?? usualIdleMs,
    connectionTimeoutMillis: 10_000,
    ...(options.queryTimeoutMs === undefined ? {} : { query_timeout: options.queryTimeoutMs }),
    types: typeParsers,
    ...(options.budget && { Client: budgetedClient(options.budget, options.application) }),
    ...onConnect((client) => {
      // the pool listens to those that are idle, and whoever has taken one out begins to a little later: a server's last word
      // may come between the two, in the very packet of the answer before
      client.on('error', () => {});
      connected.add(client);
      client.once('end', () => connected.delete(client));
      return setUp(client, options).finally(() => noteOpened(client));
    }),
  });
  // an idle connection that is lost is only an event; unheard, it would end the process
  pool.on('error', options.onError);
  connections.set(pool, connected);
  options.budget?.join(pool);
  return pool;
}

/** What PostgreSQL keeps of an application's name, in bytes. */
const longestName = 63;

export function cut(name: string, most = longestName): string {
  const bytes = Buffer.from(name);
  return bytes.length <= most
    ? name
    : bytes
        .subarray(0, most)
        .toString()
        .replace(/\uFFFD+$/, '');
}

/** Those of each pool that are open, or being set up. */
const connections = new WeakMap<Pool, ReadonlySet<ClientBase>>();
/** Who is in the middle of something may bring it to an end within this time. */
const finishMs = 3_000;

/** No connection is handed out from now on; returns when none is left, having cut those that were not given back in time. */
export async function closePool(pool: Pool, withinMs = finishMs): Promise<void> {
  const ended = endOf(pool);
  turnAway(pool);
  const timer = setTimeout(() => {
    // one that is in a statement is cut off; PostgreSQL rolls back what it did
    for (const client of connections.get(pool) ?? []) void end(client);
  }, withinMs);
  // and one that cannot be reached to be cut is not waited for
  await within(2 * withinMs, ended);
  clearTimeout(timer);
}

const ends = new WeakMap<Pool, Promise<void>>();

function endOf(pool: Pool): Promise<void> {
  const known = ends.get(pool) ?? (pool.ending ? Promise.resolve() : pool.end().catch(() => {}));
  ends.set(pool, known);
  return known;
}

/** A pool that ends forgets those who wait for a connection: they would learn of it when their time is up. */
function turnAway(pool: Pool): void {
  const waiting: unknown = Reflect.get(pool, '_pendingQueue');
  if (!Array.isArray(waiting)) return;
  for (const { callback } of waiting.splice(0) as { callback: (error: Error) => void }[])
    callback(new Error(poolClosed));
}

async function end(client: ClientBase): Promise<void> {
  await (client as Client).end().catch(() => {});
}

/** The pool waits for the promise before it hands the connection out; its types do not say so. */
function onConnect(hook: (client: ClientBase) => Promise<void>): object {
  return { onConnect: hook };
}

/**
 * How long a transaction may be left alone. Those of the control database are short, and everybody waits for them: a
 * process that is frozen in one must not stop the others for long.
 */
export const forgotten = { control: '5s', millrace: '60s' } as const;

/**
 * For connections that others wait for: one whose process stands still in a transaction, or whose machine is gone without a
 * word, is ended by the server. (By itself it would notice the latter after two hours.)
 */
export function notForgotten(schema: keyof typeof forgotten): string {
  return `
    set idle_in_transaction_session_timeout to '${forgotten[schema]}';
    set tcp_keepalives_idle to 10;
    set tcp_keepalives_interval to 5;
    set tcp_keepalives_count to 3`;
}

/**
 * In the round trip that proves the connection. As parameters at startup, PgBouncer would refuse some of them.
 *
 * - `jit` off: an ordinary server compiles our plans again at each execution, because a plan without sequential scans has
 *   a high estimated cost before PostgreSQL 18. That took more than half of a hand-over's processor time.
 * - `vacuum_cost_delay`: a sweep of a large table pauses now and then, because others of this server have work meanwhile.
 */
function sessionSettings(schema: PoolOptions['schema']): string {
  return `
    set search_path to ${schema};
    set timezone to 'UTC';
    set jit to off;
    set vacuum_cost_delay to '2ms';
    set idle_in_transaction_session_timeout to '${forgotten[schema]}'`;
}

export async function setUp(
  client: ClientBase,
  options: Omit<PoolOptions, 'max' | 'onError' | 'idleMs'>,
): Promise<void> {
  const proof = await rowOf<Proof>(
    client,
    `${sessionSettings(options.schema)};
     select pg_backend_pid() as pid, (select oid from pg_database where datname = current_database()) as oid`,
  );
  prove(client, options, proof);
  await options.onOpen?.(client);
}

interface Proof {
  readonly pid: number;
  readonly oid: number;
}

/** That the connection is of one backend, and of the database that is meant. */
function prove(
  client: ClientBase,
  { address, allowPooler }: Pick<PoolOptions, 'address' | 'allowPooler'>,
  { pid, oid }: Proof,
): void {
  const announced: unknown = Reflect.get(client, 'processID');
  if (!allowPooler && announced !== pid)
    throw new MillraceError(
      'bad_configuration',
      `${describe(address)} is behind a connection pooler; Millrace needs direct or session-pooled connections. ` +
        'If it pools by session, set MILLRACE_SESSION_POOLER=true',
    );
  refuseOther(address, oid);
}

/** Several statements in one round trip, one of which answers a row: opening a connection is mostly waiting. */
async function rowOf<R>(client: ClientBase, statements: string): Promise<R> {
  const results = (await client.query(statements)) as unknown as readonly { readonly rows: readonly R[] }[];
  const row = results.find(({ rows }) => rows.length > 0)?.rows[0];
  if (row === undefined) throw new Error('a statement that always answers a row answered none');
  return row;
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

/** Longer than this a connection does not wait for the end of a migration: whoever wants it is told. */
const longestWait = '3s';

/**
 * What every connection of an engine to a tenant does first (I6): take `drain` shared, waiting out a migration, and
 * then, in a statement of its own so that it sees what that migration committed, look at the version.
 */
export function guardVersion(engineVersion: string): (client: ClientBase) => Promise<void> {
  const lock = `
    set lock_timeout to '${longestWait}';
    select pg_advisory_lock_shared(${locks.drain.join()})`;
  return async (client) => {
    await client.query(lock).catch(unlessLocked('the tenant is being upgraded; try again'));
    // whoever changes the table itself is waited for no longer than a migration
    const { version } = await rowOf<{ version: string }>(
      client,
      'select version from installation; reset lock_timeout',
    ).catch(unlessLocked("another transaction has locked the tenant's tables; try again"));
    if (version !== engineVersion) throw new VersionMismatch(version);
  };
}

function unlessLocked(message: string): (error: unknown) => never {
  return (error) => {
    throw isLockTimeout(error) ? new MillraceError('tenant_unavailable', message, { cause: error }) : error;
  };
}
