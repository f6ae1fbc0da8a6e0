/** Databases for suites that run migrations themselves, and control databases; dropped at the end of the suite. */
import { randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { engineVersion } from '../../src/engine/engine.ts';
import { type Db, onPool } from '../../src/kernel/sql.ts';
import { type Address, onDatabase } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { ownSchemaSource } from '../../src/postgres/schema-source.ts';
import { openPool } from '../../src/postgres/pool/pool.ts';
import { administer, serverAddress } from './postgres-server.ts';

export interface FreshDatabase {
  readonly address: Address;
  close(): Promise<void>;
}

/** A unique address; the database is not created yet. */
export function freshAddress(): FreshDatabase {
  const server = serverAddress();
  const name = `fresh_${randomBytes(6).toString('hex')}`;
  return {
    address: onDatabase(server, name),
    close: () => administer(server, `drop database if exists ${name} with (force)`),
  };
}

export async function makeFreshDatabase(): Promise<FreshDatabase> {
  const fresh = freshAddress();
  await administer(serverAddress(), `create database ${fresh.address.database}`);
  return fresh;
}

/** A tenant's database after `migrate`, with its version recorded. */
export async function makeInstalledTenant(version = engineVersion): Promise<FreshDatabase> {
  const fresh = await makeFreshDatabase();
  await install(fresh.address, 'tenant', version);
  return fresh;
}

export interface ControlDatabase extends FreshDatabase {
  readonly pool: Pool;
  readonly db: Db;
}

export async function makeControlDatabase(): Promise<ControlDatabase> {
  const fresh = await makeFreshDatabase();
  await install(fresh.address, 'control', engineVersion);
  const { address } = fresh;
  const rest = { schema: 'control', application: 'millrace tests', max: 5, allowPooler: false } as const;
  const pool = openPool({ address, ...rest, onError: () => {} });
  return {
    address,
    pool,
    db: onPool(pool),
    async close() {
      await pool.end();
      await fresh.close();
    },
  };
}

async function install(address: Address, set: 'control' | 'tenant', version: string): Promise<void> {
  const source = await ownSchemaSource(set);
  await withClient(address, (client) => migrate(client, { ...source, version }));
}
