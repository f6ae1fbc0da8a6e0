/**
 * A look at a tenant's database from outside: is it there, is Millrace in it, at which version? All that the shell ever
 * reads of a tenant by itself. The answer is of a moment when no migration was under way: `drain` is taken shared first,
 * and the version read in a statement after that (I6).
 */
import { Client } from 'pg';
import { isConnectionLoss, isLockTimeout, isMissingRight, isMissingTable, sqlStateOf } from '../errors.ts';
import { within } from '../kernel/service.ts';
import { onClient, sql } from '../kernel/sql.ts';
import { isVersion } from '../kernel/text/version.ts';
import { type Address, clientConfig } from '../postgres/address.ts';
import { proveDatabase } from '../postgres/databases.ts';
import { locks } from '../postgres/locks.ts';
import { longestVersion, recordedVersion } from '../postgres/recorded-version.ts';
import { missingRightStart } from '../control/reasons.ts';

export type Look =
  | { readonly kind: 'installed'; readonly version: string }
  | { readonly kind: 'not_installed' }
  /** A transaction holds `drain`: look again when it is over. */
  | { readonly kind: 'migrating' }
  /** A transaction that is no migration has locked the table of the version. */
  | { readonly kind: 'locked' }
  | { readonly kind: 'gone' }
  /** The server does not answer, refuses, or what it answers makes no sense (`installationFaultStart`). */
  | { readonly kind: 'unreachable'; readonly detail: string };

/** How every sentence begins about a table of the version that nobody could read one from. */
export const installationFaultStart = 'its table millrace.installation is not as Millrace makes it';

/** A server that does not answer within this is out of reach. */
const answerMs = 3_000;
const goodbyeMs = 500;

/** Rejects where what is installed cannot be used. */
export type Prove = (client: Client, version: string) => Promise<void>;

/** Waits so long for the end of a migration, and answers soon after that at the latest. */
export async function look(address: Address, waitMs: number, prove?: Prove): Promise<Look> {
  const client = new Client({
    ...clientConfig(address, 'millrace look'),
    connectionTimeoutMillis: answerMs,
    query_timeout: waitMs + answerMs,
  });
  client.on('error', () => {});
  try {
    await client.connect();
    const found = await lookWith(client, address, waitMs);
    if (found.kind === 'installed') await prove?.(client, found.version);
    return found;
  } catch (error) {
    return failedLook(error);
  } finally {
    // a server that has stopped answering does not say goodbye either
    await within(
      goodbyeMs,
      client.end().catch(() => {}),
    );
  }
}

async function lookWith(client: Client, address: Address, waitMs: number): Promise<Look> {
  const db = onClient(client);
  await proveDatabase(client, address);
  await db.exec(sql`select set_config('lock_timeout', ${`${waitMs}ms`}, false)`);
  await db.exec(sql`select pg_advisory_lock_shared(${locks.drain[0]}::integer, ${locks.drain[1]}::integer)`);
  const version = await recordedVersion(db).catch(unlessLocked);
  if (version === locked) return { kind: 'locked' };
  return version === undefined ? { kind: 'not_installed' } : lookAt(version);
}

const locked = Symbol('locked');

function unlessLocked(error: unknown): typeof locked {
  if (isLockTimeout(error)) return locked;
  throw isOtherwiseMade(error) ? new Error(`${installationFaultStart}: ${error.message}`, { cause: error }) : error;
}

/** Something of that name is there, and may be read, but not as the statement does. */
function isOtherwiseMade(error: unknown): error is Error {
  const isOfStatement = error instanceof Error && sqlStateOf(error)?.startsWith('42') === true;
  return isOfStatement && !isMissingRight(error) && !isMissingTable(error);
}

function lookAt(version: string | null): Look {
  if (version !== null && isVersion(version)) return { kind: 'installed', version };
  const recorded = version === null ? 'null' : JSON.stringify(version.slice(0, longestVersion));
  return { kind: 'unreachable', detail: `${installationFaultStart}: the version recorded in it is none: ${recorded}` };
}

function failedLook(error: unknown): Look {
  if (sqlStateOf(error) === '3D000') return { kind: 'gone' };
  // dropped between two statements
  if (isMissingTable(error)) return { kind: 'not_installed' };
  if (isLockTimeout(error)) return { kind: 'migrating' };
  const detail = error instanceof Error ? error.message : String(error);
  if (isConnectionLoss(error)) return { kind: 'unreachable', detail: `it cannot be reached (${detail})` };
  return { kind: 'unreachable', detail: isMissingRight(error) ? `${missingRightStart}: ${detail}` : detail };
}
