import type { Pool } from 'pg';
import { postgresErrands } from '../../src/errands/postgres.ts';
import { onPool, sql } from '../../src/kernel/sql.ts';
import { openPool } from '../../src/postgres/pool/pool.ts';
import { makeTenantDatabase } from '../harness/tenant-database.ts';
import { describeErrands, type ErrandBench } from './errands.ts';

async function makeBench(): Promise<ErrandBench> {
  const database = await makeTenantDatabase();
  const { address, db } = database;
  const pools: Pool[] = [];
  const options = { schema: 'millrace', application: 'millrace tests', max: 2, allowPooler: false } as const;
  return {
    async open() {
      const pool = openPool({ address, ...options, onError: () => {} });
      pools.push(pool);
      return postgresErrands(onPool(pool));
    },
    async clear() {
      await db.exec(sql`delete from errand`);
      await db.exec(sql`delete from errand_hold`);
      await db.exec(sql`delete from errand_worker`);
    },
    async close() {
      await Promise.all(pools.map((pool) => pool.end()));
      await database.close();
    },
  };
}

describeErrands('PostgreSQL', makeBench);
