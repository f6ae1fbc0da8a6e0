/** A tenant's database for one suite: a clone of the migrated template, dropped at the end of the suite. */
import { randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { type Db, onPool } from '../../src/kernel/sql.ts';
import { type Address, onDatabase } from '../../src/postgres/address.ts';
import { openPool } from '../../src/postgres/pool/pool.ts';
import { administer, serverAddress, tenantTemplate } from './postgres-server.ts';

export interface TenantDatabase {
  readonly address: Address;
  readonly pool: Pool;
  readonly db: Db;
  close(): Promise<void>;
}

export async function makeTenantDatabase(): Promise<TenantDatabase> {
  const server = serverAddress();
  const name = `tenant_${randomBytes(6).toString('hex')}`;
  await administer(server, `create database ${name} template ${tenantTemplate}`);
  const address = onDatabase(server, name);
  const rest = { schema: 'millrace', application: 'millrace tests', max: 5, allowPooler: false } as const;
  const pool = openPool({ address, ...rest, onError: () => {} });
  return {
    address,
    pool,
    db: onPool(pool),
    async close() {
      await pool.end();
      await administer(server, `drop database ${name} with (force)`);
    },
  };
}
