/**
 * SQL is written as SQL: a template tag that binds every value, and `Db`, the interface that query functions use.
 *
 * 1. Only literals of our own code become text of a statement.
 * 2. A statement's text is constant per call site, so it is prepared once per connection, under a name of its own.
 * 3. If the backend of a transaction dies, the transaction rejects and drops its connection. It never ends the process.
 */
import { createHash } from 'node:crypto';
import type { ClientBase, Pool, PoolClient, QueryResultRow } from 'pg';
import { isSerialization } from '../errors.ts';
import { delayMs } from './backoff.ts';
import { pause } from './service.ts';

export class Sql {
  readonly strings: readonly string[];
  readonly values: readonly unknown[];

  constructor(strings: readonly string[], values: readonly unknown[]) {
    this.strings = strings;
    this.values = values;
  }

  /** Flattens nested fragments into `$1`-style text. */
  compile(): { name: string; text: string; values: unknown[] } {
    const values: unknown[] = [];
    const text = render(this, values);
    return { name: statementName(text), text, values };
  }
}

export function sql(strings: TemplateStringsArray, ...values: readonly unknown[]): Sql {
  return new Sql(strings, values);
}

export const empty: Sql = sql``;

/** Joins conditions with `and`. Without conditions: `true`. */
export function allOf(conditions: readonly Sql[]): Sql {
  return conditions.length === 0 ? sql`true` : joined(conditions, ' and ');
}

/** Joins arguments with commas. */
export function listOf(parts: readonly Sql[]): Sql {
  return joined(parts, ', ');
}

function joined(parts: readonly Sql[], separator: string): Sql {
  const between = parts.slice(1).map(() => separator);
  return new Sql(['', ...between, ''], parts);
}

function render(part: Sql, values: unknown[]): string {
  let text = part.strings[0] ?? '';
  part.values.forEach((value, i) => {
    text += value instanceof Sql ? render(value, values) : `$${values.push(value)}`;
    text += part.strings[i + 1] ?? '';
  });
  return text;
}

const names = new Map<string, string>();

function statementName(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = createHash('sha1').update(text).digest('base64url').slice(0, 20);
    names.set(text, name);
  }
  return name;
}

/** The first parameter of query functions. A pool and an open transaction both implement it. */
export interface Db {
  rows<R extends QueryResultRow>(query: Sql): Promise<R[]>;
  one<R extends QueryResultRow>(query: Sql): Promise<R>;
  maybeOne<R extends QueryResultRow>(query: Sql): Promise<R | undefined>;
  exec(query: Sql): Promise<number>;
  transaction<T>(work: (tx: Db) => Promise<T>): Promise<T>;
}

/**
 * Retries after deadlocks and serialization failures. A failed statement or transaction has changed nothing, so it is repeated
 * as a whole. Therefore `work` may run more than once, and must have no effects outside its transaction.
 */
export function onPool(pool: Pool): Db {
  const once = queries(pool);
  return {
    rows: (query) => retryConflicts(() => once.rows(query)),
    one: (query) => retryConflicts(() => once.one(query)),
    maybeOne: (query) => retryConflicts(() => once.maybeOne(query)),
    exec: (query) => retryConflicts(() => once.exec(query)),
    transaction: (work) => retryConflicts(() => transaction(pool, work)),
  };
}

const maxTries = 8;

async function retryConflicts<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (tries === maxTries || !isSerialization(error)) throw error;
      await pause(delayMs({ firstMs: 2, capMs: 100, jitter: 1 }, tries));
    }
  }
}

/** A `Db` on one connection that the caller owns. The caller drops it if the failure of a transaction means that it is lost. */
export function onClient(client: ClientBase): Db {
  return {
    ...queries(client),
    transaction: (work) =>
      bracket(client, outermost, work).catch((error: unknown) => {
        throw error instanceof RollbackFailed ? error.cause : error;
      }),
  };
}

function queries(target: Pool | ClientBase): Omit<Db, 'transaction'> {
  const rows = async <R extends QueryResultRow>(query: Sql): Promise<R[]> =>
    (await target.query<R>(query.compile())).rows;
  return {
    rows,
    maybeOne: async <R extends QueryResultRow>(query: Sql) => (await rows<R>(query))[0],
    one: async <R extends QueryResultRow>(query: Sql) => {
      const row = (await rows<R>(query))[0];
      if (row === undefined) throw new Error('a statement that always returns a row returned none');
      return row;
    },
    exec: async (query) => (await target.query(query.compile())).rowCount ?? 0,
  };
}

async function transaction<T>(pool: Pool, work: (tx: Db) => Promise<T>): Promise<T> {
  const client: PoolClient = await pool.connect();
  // pg reports a connection lost between two queries only as an event; without a listener, it would end the process
  const onLost = (): void => {};
  client.on('error', onLost);
  let broken: Error | undefined;
  try {
    return await bracket(client, outermost, work);
  } catch (error) {
    broken = error instanceof RollbackFailed ? error : undefined;
    throw error instanceof RollbackFailed ? error.cause : error;
  } finally {
    client.off('error', onLost);
    client.release(broken);
  }
}

/** The connection must not be used again. `cause` is the error of the work. */
class RollbackFailed extends Error {}

interface Brackets {
  readonly open: string;
  readonly close: string;
  readonly undo: string;
}

const outermost: Brackets = { open: 'begin', close: 'commit', undo: 'rollback' };
/** Savepoints are released after a rollback as well. Otherwise the next outer rollback would return to the inner savepoint. */
const inner: Brackets = {
  open: 'savepoint inner_work',
  close: 'release savepoint inner_work',
  undo: 'rollback to savepoint inner_work; release savepoint inner_work',
};

async function bracket<T>(
  client: ClientBase,
  { open, close, undo }: Brackets,
  work: (tx: Db) => Promise<T>,
): Promise<T> {
  try {
    await client.query(open);
    const result = await work(nested(client));
    const { command } = await client.query(close);
    // PostgreSQL answers ROLLBACK to a commit after a failed statement
    if (command === 'ROLLBACK') throw new Error('the transaction was rolled back: one of its statements had failed');
    return result;
  } catch (error) {
    const cause = error instanceof RollbackFailed ? error.cause : error;
    try {
      await client.query(undo);
    } catch {
      throw new RollbackFailed('the rollback failed', { cause });
    }
    throw cause;
  }
}

/** A transaction inside another one is a savepoint: a caught failure of the inner one leaves the outer one usable. */
function nested(client: ClientBase): Db {
  return { ...queries(client), transaction: (work) => bracket(client, inner, work) };
}
