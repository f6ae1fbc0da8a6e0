/**
 * The PostgreSQL server of a benchmark: an embedded one of its own, or an existing one (`--database`).
 *
 * The embedded server has the settings that `up` gives it (fsync and synchronous commits included), lives in a temporary
 * home, and is removed at the end. On an existing server the benchmark makes databases of its own and drops them at the
 * end. It refuses to begin where a database already has one of the names that it needs.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silent } from '../src/kernel/log.ts';
import { type Address, addressOfSocket, addressOfUrl, onDatabase } from '../src/postgres/address.ts';
import { quoted, withClient } from '../src/postgres/databases.ts';
import { startEmbedded } from '../src/postgres/embedded/embedded.ts';
import { atEnd } from './ending.ts';
import { postmasterOf } from './processes.ts';
import { controlDatabase, tenantDatabase } from './tenant.ts';

export interface Server {
  readonly home: string;
  /** Process id of the postmaster; undefined if it runs on another machine. */
  readonly pid: number | undefined;
  /** The databases that an existing server had before the benchmark began, without its own ones. */
  readonly others: readonly string[];
  address(database: string): Address;
  /** Makes sure that these databases are the benchmark's own, whoever makes them: they are dropped at the end. */
  reserve(...databases: readonly string[]): void;
  /** Creates an empty database, replacing one of that name that is the benchmark's own. */
  fresh(database: string): Promise<Address>;
  drop(database: string): Promise<void>;
  stop(): Promise<void>;
}

/** Creates a folder that is removed when the benchmark ends. */
export async function temporaryHome(): Promise<{ readonly home: string; readonly remove: () => Promise<void> }> {
  const home = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
  return { home, remove: atEnd(() => rm(home, { recursive: true, force: true })) };
}

export interface ServerOptions {
  /** URL of an existing server. */
  readonly database: string | undefined;
}

/** `settings` are for the embedded server. */
export async function startServer(
  { database }: ServerOptions,
  settings: Readonly<Record<string, string>> = {},
): Promise<Server> {
  return database === undefined ? startOwn(settings) : useExisting(addressOfUrl(database));
}

async function startOwn(settings: Readonly<Record<string, string>>): Promise<Server> {
  const { home, remove } = await temporaryHome();
  const embedded = await startEmbedded({ home, log: silent, settings });
  const stop = atEnd(() => embedded.stop('immediate'));
  const { pid, connection } = embedded;
  const databases = databasesOn((database) => addressOfSocket(connection, database), []);
  return {
    home,
    pid,
    others: [],
    ...databases,
    async stop() {
      await stop();
      await remove();
    },
  };
}

async function useExisting(address: Address): Promise<Server> {
  const { home, remove } = await temporaryHome();
  const { pid, others } = await withClient(address, async (client) => {
    const { rows } = await client.query<{ pid: number; is_local: boolean; others: string[] }>(`
      select pg_backend_pid() as pid,
             coalesce(inet_server_addr() <<= '127.0.0.0/8' or inet_server_addr() = '::1', true) as is_local,
             array(select datname from pg_database where not datistemplate and datname <> 'postgres')::text[] as others`);
    const [row] = rows;
    if (row === undefined) throw new Error('a statement that always answers a row answered none');
    return { pid: row.is_local ? await postmasterOf(row.pid) : undefined, others: row.others };
  });
  const databases = databasesOn((database) => onDatabase(address, database), others);
  databases.reserve(controlDatabase, tenantDatabase);
  const dropAll = atEnd(() => databases.dropReserved());
  return {
    home,
    pid,
    others,
    ...databases,
    async stop() {
      await dropAll();
      await remove();
    },
  };
}

type Databases = Pick<Server, 'address' | 'reserve' | 'fresh' | 'drop'> & { dropReserved(): Promise<void> };

function databasesOn(address: (database: string) => Address, others: readonly string[]): Databases {
  const reserved = new Set<string>();
  const administer = (statement: string): Promise<unknown> =>
    withClient(address('postgres'), (client) => client.query(statement));
  const reserve = (...databases: readonly string[]): void => {
    const taken = databases.filter((database) => others.includes(database));
    if (taken.length > 0)
      throw new Error(
        `the server of --database already has ${taken.join(', ')}, and a benchmark touches no database but its own; ` +
          'name another server, or drop what an earlier benchmark has left',
      );
    for (const database of databases) reserved.add(database);
  };
  const drop = async (database: string): Promise<void> => {
    reserve(database);
    await administer(`drop database if exists ${quoted(database)} with (force)`);
  };
  return {
    address,
    reserve,
    drop,
    async fresh(database) {
      await drop(database);
      await administer(`create database ${quoted(database)} encoding 'UTF8' template template0`);
      return address(database);
    },
    async dropReserved() {
      for (const database of reserved) await drop(database);
    },
  };
}
