/**
 * Finds out from PostgreSQL why a part of a scheduler hangs. Uses a connection of its own, because the scheduler's
 * connections may all be busy with waiting statements.
 */
import { type Db, onClient, sql } from '../kernel/sql.ts';
import type { Address } from '../postgres/address.ts';
import { openClient, sever } from '../postgres/pool/client.ts';
import { cut } from '../postgres/pool/pool.ts';
import { holdersBlocking, lockHolderOf } from '../control/blockers.ts';
import { boundText, type HangFact } from '../control/reasons.ts';
import { textOf } from './singleton.ts';

export interface HangCause {
  /**
   * PostgreSQL works on a statement of the scheduler, or the statement waits for a lock. The scheduler is kept then: a new
   * one would begin the same statement again and wait for the same lock.
   */
  readonly isAtWork: boolean;
  readonly fact: HangFact;
}

/** Limit for connecting and querying together. It is short because the scheduler is not watched meanwhile. */
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
      return await askCause(onClient(client), cut(application));
    } finally {
      await client.end();
    }
  } catch (error) {
    if (late.signal.aborted) return { isAtWork: false, fact: { kind: 'no_answer' } };
    return { isAtWork: false, fact: { kind: 'unknown', text: boundText(textOf(error)) } };
  } finally {
    clearTimeout(timer);
  }
}

const inquirerName = 'millrace hang';

async function askCause(db: Db, application: string): Promise<HangCause> {
  const holders = await holdersBlocking(db, application);
  if (holders.length > 0) return { isAtWork: true, fact: { kind: 'lock', holders: holders.map(lockHolderOf) } };
  const oldest = await oldestStatement(db, application);
  if (oldest === undefined) return { isAtWork: false, fact: { kind: 'no_statement' } };
  const { pid, since } = oldest;
  return { isAtWork: true, fact: { kind: 'statement', pid, since: since.toISOString() } };
}

function oldestStatement(db: Db, application: string): Promise<{ pid: number; since: Date } | undefined> {
  return db.maybeOne(sql`
    select pid, query_start as since
      from pg_stat_activity
     where application_name = ${application} and datname = current_database() and state = 'active'
     order by query_start
     limit 1`);
}
