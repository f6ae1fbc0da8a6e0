/**
 * The benchmark's own PostgreSQL server: the product's embedded server with the settings that `up` gives it (fsync and
 * synchronous commits included), in a temporary home that is removed at the end.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silent } from '../src/kernel/log.ts';
import { type Address, addressOfSocket } from '../src/postgres/address.ts';
import { withClient } from '../src/postgres/databases.ts';
import { startEmbedded } from '../src/postgres/embedded/embedded.ts';
import { atEnd } from './ending.ts';

export interface Server {
  readonly home: string;
  /** Process id of the postmaster. */
  readonly pid: number;
  address(database: string): Address;
  /** Creates an empty database, replacing one of that name. */
  fresh(database: string): Promise<Address>;
  drop(database: string): Promise<void>;
  stop(): Promise<void>;
}

/** Creates a folder that is removed when the benchmark ends. */
export async function temporaryHome(): Promise<{ readonly home: string; readonly remove: () => Promise<void> }> {
  const home = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
  return { home, remove: atEnd(() => rm(home, { recursive: true, force: true })) };
}

export async function startServer(settings: Readonly<Record<string, string>> = {}): Promise<Server> {
  const { home, remove } = await temporaryHome();
  const embedded = await startEmbedded({ home, log: silent, settings });
  const stop = atEnd(() => embedded.stop('immediate'));
  const address = (database: string): Address => addressOfSocket(embedded.connection, database);
  const administer = (statement: string): Promise<unknown> =>
    withClient(address('postgres'), (client) => client.query(statement));
  const drop = async (database: string): Promise<void> => {
    await administer(`drop database if exists ${database} with (force)`);
  };
  return {
    home,
    pid: embedded.pid,
    address,
    drop,
    async fresh(database) {
      await drop(database);
      await administer(`create database ${database} encoding 'UTF8' template template0`);
      return address(database);
    },
    async stop() {
      await stop();
      await remove();
    },
  };
}
