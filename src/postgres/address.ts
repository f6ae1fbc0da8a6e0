/** Where a database is: an address as `pg` takes it, and how to name another database on the same server. */
import type { ClientConfig } from 'pg';
import { MillraceError } from '../errors.ts';

export interface Address {
  readonly url: string;
  readonly database: string;
  /** Which database is meant, where that is known: another may have its name by now. */
  readonly oid?: number;
}

export function addressOfUrl(url: string): Address {
  return onDatabase({ url }, decodeURIComponent(new URL(url).pathname.slice(1)) || 'postgres');
}

/** A server that listens on a socket in this folder. */
export function addressOfSocket(socket: { host: string; port: number; user: string }, database: string): Address {
  const url = new URL(`postgres://${encodeURIComponent(socket.user)}@localhost:${socket.port}/`);
  url.searchParams.set('host', socket.host);
  return onDatabase({ url: url.href }, database);
}

/**
 * The same server and credentials, another database. Its name is written as `pg` reads it, by decodeURI: what that does
 * not decode (`;` and `@`, say) must not be encoded, or another database would be meant.
 */
export function onDatabase(address: Pick<Address, 'url'>, database: string, oid?: number | null): Address {
  const url = new URL(address.url);
  url.pathname = `/${encodeURI(database)}`;
  if (!means(url, database))
    throw new MillraceError('bad_request', `a database called ${JSON.stringify(database)} has no address; rename it`);
  return { url: url.href, database, ...(oid != null && { oid }) };
}

/**
 * The name leads to another database than the one that is meant: to whoever asks, as if there were none of that name. So
 * PostgreSQL's own code for that says it.
 */
export function refuseOther({ database, oid }: Address, found: number): void {
  if (oid === undefined || oid === found) return;
  throw Object.assign(new Error(`database ${JSON.stringify(database)} is another one now`), { code: '3D000' });
}

/** Whether an address can mean a database of that name and no other: `#`, `?` and steps like `..` have a meaning of their own. */
export function isAddressable(database: string): boolean {
  // what cannot be written, or could not be read, as text
  if (database === '' || database.includes('\uFFFD') || Buffer.from(database).toString() !== database) return false;
  const url = new URL('postgres://localhost');
  url.pathname = `/${encodeURI(database)}`;
  return means(url, database);
}

function means(url: URL, database: string): boolean {
  return decodeURI(url.pathname.slice(1)) === database;
}

export function clientConfig(address: Address, application: string): ClientConfig {
  return {
    connectionString: address.url,
    application_name: application,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    connectionTimeoutMillis: 10_000,
  };
}

/** For logs and errors: never with a password (I12). */
export function describe({ url, database }: Address): string {
  const parsed = new URL(url);
  return `${database} at ${parsed.searchParams.get('host') ?? `${parsed.hostname}:${parsed.port || 5432}`}`;
}
