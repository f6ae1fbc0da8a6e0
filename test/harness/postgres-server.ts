/**
 * The PostgreSQL server that all suites share: the product's embedded server, in a folder of this test run, without fsync.
 * It holds a migrated template database that suites clone (tenant-database.ts).
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { silent } from '../../src/kernel/log.ts';
import { packageVersion } from '../../src/kernel/process/package-files.ts';
import { type Address, addressOfSocket, clientConfig, onDatabase } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { startEmbedded } from '../../src/postgres/embedded/embedded.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { ownSchemaSource } from '../../src/postgres/schema-source.ts';

/** Environment variable from which suites, in processes of their own, read the server's address. */
const variable = 'MILLRACE_TEST_POSTGRES';
export const tenantTemplate = 'tenant_template';

const settings = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' };

/** Starts the server unless it is already running; returns a function that stops what this call has started. */
export async function startServer(): Promise<() => Promise<void>> {
  if (process.env[variable] !== undefined) return async () => {};
  const home = await mkdtemp(join(tmpdir(), 'millrace-suites-'));
  const server = await startEmbedded({ home, log: silent, settings });
  const stop = async (): Promise<void> => {
    await server.stop('immediate');
    await rm(home, { recursive: true, force: true });
  };
  const address = addressOfSocket(server.connection, 'postgres');
  await makeTenantTemplate(address).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  process.env[variable] = JSON.stringify(address);
  return stop;
}

/** Starts an empty server for one suite; returns a function that switches back to the shared one. */
export async function ownServer(more: Readonly<Record<string, string>> = {}): Promise<() => Promise<void>> {
  const shared = process.env[variable];
  const home = await mkdtemp(join(tmpdir(), 'millrace-suites-'));
  const server = await startEmbedded({ home, log: silent, settings: { ...settings, ...more } });
  process.env[variable] = JSON.stringify(addressOfSocket(server.connection, 'postgres'));
  return async () => {
    process.env[variable] = shared;
    await server.stop('immediate');
    await rm(home, { recursive: true, force: true });
  };
}

export function serverAddress(): Address {
  const text = process.env[variable];
  if (text === undefined) throw new Error('the shared PostgreSQL is not running; is global-setup.ts configured?');
  return JSON.parse(text) as Address;
}

/** Runs one statement that needs its own connection, such as `create database`. */
export async function administer(address: Address, statement: string): Promise<void> {
  const client = new Client(clientConfig(address, 'millrace tests'));
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

async function makeTenantTemplate(server: Address): Promise<void> {
  await administer(server, `create database ${tenantTemplate}`);
  const source = await ownSchemaSource('tenant');
  await withClient(onDatabase(server, tenantTemplate), (client) =>
    migrate(client, { ...source, version: packageVersion }),
  );
}
