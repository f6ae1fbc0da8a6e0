/**
 * The only way to PostgreSQL. Statements of all simulated processes pass the door one at a time, in the order that the
 * world chooses. A scheduler's statement waits here until it is admitted. Its connection may break before or after it took
 * effect, and its process may die at either moment, also within a transaction.
 */
import type { Pool, PoolClient, QueryConfig } from 'pg';

export interface Process {
  readonly name: string;
  alive: boolean;
}

/** `lost`: the connection breaks; `died`: the process ends. Both happen before or after the statement took effect. */
export type Fate = 'served' | 'lost before' | 'lost after' | 'died before' | 'died after';

type Statement = QueryConfig | string;
type Run = (statement: Statement) => Promise<unknown>;

/** A statement or transaction that waits to be admitted. */
export interface PendingStatement {
  readonly process: Process;
  /** Short description for the trace. */
  readonly what: string;
  /** Time at which it was issued, which the product took for now. */
  readonly atMs: number;
  /** Whether it only reads. */
  readonly isRead: boolean;
  serve(fate: Fate): Promise<void>;
}

/** The error that `pg` throws for a broken connection. */
function connectionLost(): Error {
  return new Error('Connection terminated unexpectedly');
}

export class Door {
  readonly #client: PoolClient;
  readonly #now: () => number;
  readonly #waiting: PendingStatement[] = [];

  constructor(client: PoolClient, now: () => number) {
    this.#client = client;
    this.#now = now;
  }

  /** Statements of living processes, in order of arrival. */
  get waiting(): readonly PendingStatement[] {
    return this.#waiting.filter(({ process }) => process.alive);
  }

  async serve(pending: PendingStatement, fate: Fate): Promise<void> {
    this.#waiting.splice(this.#waiting.indexOf(pending), 1);
    await pending.serve(fate);
  }

  /** A pool whose statements wait to be admitted. */
  poolOf(process: Process): Pool {
    const query: Run = (statement) => this.#wait(process, statement, (fate) => this.#strike(process, statement, fate));
    const connect = (): Promise<unknown> =>
      new Promise((resolve) => {
        this.#waiting.push({
          process,
          what: 'transaction',
          atMs: this.#now(),
          isRead: false,
          serve: (fate) => this.#transaction(process, fate, resolve),
        });
      });
    return { query, connect } as unknown as Pool;
  }

  /** A pool whose statements pass at once, for a step that the world awaits. */
  get openPool(): Pool {
    const query: Run = (statement) => this.#run(statement);
    const connect = async (): Promise<unknown> => clientOf(query, () => {});
    return { query, connect } as unknown as Pool;
  }

  #run(statement: Statement): Promise<unknown> {
    return typeof statement === 'string' ? this.#client.query(statement) : this.#client.query(statement);
  }

  #wait(process: Process, statement: Statement, strike: (fate: Fate) => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        process,
        what: nameOf(statement),
        atMs: this.#now(),
        isRead: isReading(statement),
        // resolves once the statement is over, whatever its process does with the result
        serve: async (fate) => {
          try {
            const result = await strike(fate);
            if (process.alive) resolve(result);
          } catch (error) {
            if (process.alive) reject(error);
          }
        },
      });
    });
  }

  async #strike(process: Process, statement: Statement, fate: Fate): Promise<unknown> {
    if (fate === 'died before') process.alive = false;
    if (!process.alive) return undefined;
    if (fate === 'lost before') throw connectionLost();
    const result = await this.#run(statement);
    if (fate === 'died after') process.alive = false;
    if (fate === 'lost after') throw connectionLost();
    return result;
  }

  /** Runs a transaction as a whole; others wait. The fate strikes at its commit, or at the first statement after `begin`. */
  #transaction(process: Process, fate: Fate, connected: (client: unknown) => void): Promise<void> {
    return new Promise((over) => {
      let broken = false;
      const end = async (): Promise<void> => {
        broken = true;
        await this.#run('rollback');
        over();
      };
      const query: Run = async (statement) => {
        if (broken) throw connectionLost();
        const early = fate === 'lost before' || fate === 'died before';
        const struck = early ? statement !== 'begin' : statement === 'commit';
        try {
          const result = await this.#strike(process, statement, struck ? fate : 'served');
          if (process.alive) return result;
        } catch (error) {
          if (struck) await end();
          throw error;
        }
        await end();
        return new Promise(() => {});
      };
      connected(
        clientOf(query, () => {
          if (!broken) over();
        }),
      );
    });
  }
}

function clientOf(query: Run, release: () => void): object {
  return { query, release, on: () => {}, off: () => {} };
}

/** The SQL function that a statement calls, or the table it uses. */
function nameOf(statement: Statement): string {
  const text = textOf(statement);
  return stage.exec(text)?.[1] ?? /\b(?:from|update|into)\s+(\w+)/.exec(text)?.[1] ?? text;
}

/** Our SQL functions have names of several words, unlike PostgreSQL's own that occur in this position. */
const stage = /\b(?:from|select)\s+(\w+_\w+)\s*\(/;

function isReading(statement: Statement): boolean {
  const text = textOf(statement);
  return /^\s*select\b/.test(text) && !stage.test(text);
}

function textOf(statement: Statement): string {
  return typeof statement === 'string' ? statement : statement.text;
}
