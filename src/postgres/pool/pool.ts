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
  /** A statement without an answer after this time fails, and its connection is closed. Default: no limit. */
  readonly queryTimeoutMs?: number;
  readonly allowPooler: boolean;
  /** Additional set-up of a new connection. A rejection closes it. */
  readonly onOpen?: (client: ClientBase) => Promise<void>;
  readonly onError: (error: Error) => void;
  /** How long an unused connection stays open. */
  readonly idleMs?: number;
  /** The limit for all pools of this process. */
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
      // the pool listens to idle connections, and a caller adds its listener a little later; an error of the server may
      // arrive in between
      client.on('error', () => {});
      connected.add(client);
      client.once('end', () => connected.delete(client));
      return setUp(client, options).finally(() => noteOpened(client));
    }),
  });
  // the loss of an idle connection is an error event; without a listener, it would end the process
  pool.on('error', options.onError);
  connections.set(pool, connected);
  options.budget?.join(pool);
  return pool;
}

/** PostgreSQL cuts the name of an application to this number of bytes. */
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

/** The connections of each pool that are open or being set up. */
const connections = new WeakMap<Pool, ReadonlySet<ClientBase>>();
/** How long callers may still use their connections when the pool ends. */
const finishMs = 3_000;

/** Hands out no more connections, cuts those that were not released in time, and returns when none is left. */
export async function closePool(pool: Pool, withinMs = finishMs): Promise<void> {
  const ended = endOf(pool);
  turnAway(pool);
  const timer = setTimeout(() => {
    // PostgreSQL rolls back a statement whose connection is cut
    for (const client of connections.get(pool) ?? []) void end(client);
  }, withinMs);
  // do not wait for a connection that cannot be cut
  await within(2 * withinMs, ended);
  clearTimeout(timer);
}

const ends = new WeakMap<Pool, Promise<void>>();

function endOf(pool: Pool): Promise<void> {
  const known = ends.get(pool) ?? (pool.ending ? Promise.resolve() : pool.end().catch(() => {}));
  ends.set(pool, known);
  return known;
}

/** A pool of pg that ends does not reject waiting callers; without this they would wait until their timeout. */
function turnAway(pool: Pool): void {
  const waiting: unknown = Reflect.get(pool, '_pendingQueue');
  if (!Array.isArray(waiting)) return;
  for (const { callback } of waiting.splice(0) as { callback: (error: Error) => void }[])
    callback(new Error(poolClosed));
}

async function end(client: ClientBase): Promise<void> {
  await (client as Client).end().catch(() => {});
}

/** The pool awaits the promise before it hands out the connection, although its types do not say so. */
function onConnect(hook: (client: ClientBase) => Promise<void>): object {
  return { onConnect: hook };
}

/**
 * `idle_in_transaction_session_timeout`. Transactions in the control database are short, and all processes wait for them: a
 * process that freezes in a transaction must not block the others for long.
 */
export const forgotten = { control: '5s', millrace: '60s' } as const;

/**
 * For connections whose locks others wait for. The server ends such a connection if its process freezes in a transaction, or
 * if its machine has disappeared. Without these settings it would notice the latter after two hours.
 */
export function notForgotten(schema: keyof typeof forgotten): string {
  return `
    set idle_in_transaction_session_timeout to '${forgotten[schema]}';
    set tcp_keepalives_idle to 10;
    set tcp_keepalives_interval to 5;
    set tcp_keepalives_count to 3`;
}

/**
 * Sent in the round trip that checks the connection. PgBouncer would refuse some of them as startup parameters.
 *
 * - `jit` off: an ordinary server compiles our plans again at each execution, because a plan without sequential scans has
 *   a high estimated cost before PostgreSQL 18. That took more than half of a hand-over's processor time.
 * - `vacuum_cost_delay`: a sweep of a large table pauses now and then, so that other sessions of the server can work.
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

/** Checks that the connection has one backend for itself, and leads to the intended database. */
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

/** Sends several statements in one round trip, because opening a connection is mostly waiting. One of them returns a row. */
async function rowOf<R>(client: ClientBase, statements: string): Promise<R> {
  const results = (await client.query(statements)) as unknown as readonly { readonly rows: readonly R[] }[];
  const row = results.find(({ rows }) => rows.length > 0)?.rows[0];
  if (row === undefined) throw new Error('a statement that always answers a row answered none');
  return row;
}

/** The tenant is recorded with another version than that of the connection's engine. The loader must find its engine again. */
export class VersionMismatch extends Error {
  override readonly name = 'VersionMismatch';
  readonly recorded: string;

  constructor(recorded: string) {
    super(`the tenant is at version ${recorded}`);
    this.recorded = recorded;
  }
}

/** How long a new connection waits for the end of a migration before it fails. */
const longestWait = '3s';

/**
 * The first statements of every connection of an engine to a tenant (I6). It takes `drain` shared, which waits for a running
 * migration. Then it reads the version, in a separate statement that sees the commit of that migration.
 */
export function guardVersion(engineVersion: string): (client: ClientBase) => Promise<void> {
  const lock = `
    set lock_timeout to '${longestWait}';
    select pg_advisory_lock_shared(${locks.drain.join()})`;
  return async (client) => {
    await client.query(lock).catch(unlessLocked('the tenant is being upgraded; try again'));
    // wait for a lock on the table no longer than for a migration
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
