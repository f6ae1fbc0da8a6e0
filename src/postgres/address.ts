/** Addresses of databases, as `pg` accepts them, and how to address another database on the same server. */
import type { ClientConfig } from 'pg';
import { MillraceError } from '../errors.ts';

export interface Address {
  readonly url: string;
  readonly database: string;
  /** The database's oid, if it is known. Another database may have got its name meanwhile. */
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
 * The same server and credentials, another database. `pg` reads the name with decodeURI, so characters that decodeURI does not
 * decode, such as `;` and `@`, must not be encoded.
 */
export function onDatabase(address: Pick<Address, 'url'>, database: string, oid?: number | null): Address {
  const url = new URL(address.url);
  url.pathname = `/${encodeURI(database)}`;
  if (!means(url, database))
    throw new MillraceError('bad_request', `a database called ${JSON.stringify(database)} has no address; rename it`);
  return { url: url.href, database, ...(oid != null && { oid }) };
}

/**
 * The name leads to another database than the intended one. For the caller that is the same as a missing database, so the error
 * has PostgreSQL's code for that.
 */
export function refuseOther({ database, oid }: Address, found: number): void {
  if (oid === undefined || oid === found) return;
  throw Object.assign(new Error(`database ${JSON.stringify(database)} is another one now`), { code: '3D000' });
}

/** Whether a URL can address a database of that name: `#`, `?` and steps like `..` have another meaning in URLs. */
export function isAddressable(database: string): boolean {
  // names that cannot be encoded or decoded as text
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

/** For logs and errors, without the password (I12). */
export function describe({ url, database }: Address): string {
  const parsed = new URL(url);
  return `${database} at ${parsed.searchParams.get('host') ?? `${parsed.hostname}:${parsed.port || 5432}`}`;
}
