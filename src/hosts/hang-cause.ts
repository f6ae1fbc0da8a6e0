/**
 * Why a part of a scheduler hangs, as PostgreSQL knows it. Asked on a connection of its own: those of the scheduler may all
 * be taken by statements that wait.
 */
import { type Db, onClient, sql } from '../kernel/sql.ts';
import type { Address } from '../postgres/address.ts';
import { openClient, sever } from '../postgres/pool/client.ts';
import { cut } from '../postgres/pool/pool.ts';
import { holdersBlocking, howToFree, inWords } from '../control/blockers.ts';
import { textOf } from './singleton.ts';

export interface HangCause {
  /**
   * PostgreSQL works on a statement of the scheduler, or the statement waits for a lock. The scheduler is left alone then:
   * another one would begin that statement anew, and wait for the same lock.
   */
  readonly isAtWork: boolean;
  readonly text: string;
}

/** How a cause begins that names who holds the lock, and the statement that ends them. */
export const lockStart = 'it waits for a lock held by';

/** In all: the scheduler is not watched meanwhile. */
const askMs = 3_000;

/** `application`: the name of the scheduler's connections. Never rejects. */
export async function findHangCause(
  address: Address,
  { application, allowPooler }: { readonly application: string; readonly allowPooler: boolean },
): Promise<HangCause> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), askMs);
  const inquirer = { address, schema: 'millrace', application: inquirerName, allowPooler } as const;
  try {
    const client = await openClient({ ...inquirer, connectMs: askMs, signal: late.signal });
    late.signal.addEventListener('abort', () => sever(client));
    try {
      return await causeOf(onClient(client), cut(application));
    } finally {
      await client.end();
    }
  } catch (error) {
    const text = late.signal.aborted
      ? 'its database does not answer'
      : `its database cannot be asked: ${textOf(error)}`;
    return { isAtWork: false, text };
  } finally {
    clearTimeout(timer);
  }
}

const inquirerName = 'millrace hang';

async function causeOf(db: Db, application: string): Promise<HangCause> {
  const holders = await holdersBlocking(db, application);
  if (holders.length > 0) {
    const text = `${lockStart} ${holders.map(inWords).join(', ')}; ${howToFree(holders)}, or wait`;
    return { isAtWork: true, text };
  }
  const oldest = await oldestStatement(db, application);
  if (oldest === undefined) return { isAtWork: false, text: 'PostgreSQL works on none of its statements' };
  const { pid, since } = oldest;
  return {
    isAtWork: true,
    text: `PostgreSQL has been at work on its statement since ${since.toISOString()} (backend ${pid})`,
  };
}

function oldestStatement(db: Db, application: string): Promise<{ pid: number; since: Date } | undefined> {
  return db.maybeOne(sql`
    select pid, query_start as since
      from pg_stat_activity
     where application_name = ${application} and datname = current_database() and state = 'active'
     order by query_start
     limit 1`);
}
