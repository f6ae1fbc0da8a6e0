/**
 * Inspects a tenant's database from outside: does it exist, is Millrace installed, at which version? The shell itself reads
 * nothing else in a tenant. No migration is under way at the moment of the read: `drain` is taken shared first, and the
 * version is read in a later statement (I6).
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
import { boundText, type Reason, reasons } from '../control/reasons.ts';

export type Look =
  | { readonly kind: 'installed'; readonly version: string }
  | { readonly kind: 'not_installed' }
  /** A transaction holds `drain`: inspect again when it has ended. */
  | { readonly kind: 'migrating' }
  /** A transaction that is not a migration has locked the table of the version. */
  | { readonly kind: 'locked' }
  | { readonly kind: 'gone' }
  /** The server does not answer or refuses, or no version can be read from its answer. */
  | { readonly kind: 'unreachable'; readonly reason: Reason };

/** The table of the version exists, but no version can be read from it. */
class InstallationFault extends Error {
  override readonly name = 'InstallationFault';
}

/** A server that does not answer within this time counts as unreachable. */
const answerMs = 3_000;
const goodbyeMs = 500;

/** Rejects if the installation cannot be used. */
export type Prove = (client: Client, version: string) => Promise<void>;

/** Waits up to `waitMs` for the end of a migration, and returns at most a few seconds later. */
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
    // bounded: a server that has stopped answering does not close the connection either
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
  throw isIncompatible(error) ? new InstallationFault(error.message, { cause: error }) : error;
}

/** A readable object of that name exists, but does not fit the statement. */
function isIncompatible(error: unknown): error is Error {
  const isOfStatement = error instanceof Error && sqlStateOf(error)?.startsWith('42') === true;
  return isOfStatement && !isMissingRight(error) && !isMissingTable(error);
}

function lookAt(version: string | null): Look {
  if (version !== null && isVersion(version)) return { kind: 'installed', version };
  const recorded = version === null ? 'null' : JSON.stringify(version.slice(0, longestVersion));
  throw new InstallationFault(`the recorded version is not valid: ${recorded}`);
}

function failedLook(error: unknown): Look {
  if (sqlStateOf(error) === '3D000') return { kind: 'gone' };
  // the table was dropped between two statements
  if (isMissingTable(error)) return { kind: 'not_installed' };
  if (isLockTimeout(error)) return { kind: 'migrating' };
  return { kind: 'unreachable', reason: explainFailure(error) };
}

function explainFailure(error: unknown): Reason {
  const code = 'unreachable';
  const text = boundText(error instanceof Error ? error.message : String(error));
  if (error instanceof InstallationFault) return { code, cause: 'installation_table', data: { text } };
  if (isConnectionLoss(error)) return { code, cause: 'connection_lost', data: { text } };
  return isMissingRight(error) ? { code, cause: 'missing_right', data: { text } } : reasons.error(code, text);
}
