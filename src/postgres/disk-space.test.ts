import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import { sqlStateOf } from '../errors.ts';
import { onPool, sql } from '../kernel/sql.ts';
import { proveDiskSpace } from './disk-space.ts';
import { openPool } from './pool/pool.ts';

let database: TenantDatabase;
beforeAll(async () => {
  database = await makeTenantDatabase();
});
afterAll(() => database.close());

it('The trial of a disk writes a file there, and fails where the server cannot write one', async () => {
  const { address } = database;
  const rest = { schema: 'millrace', application: 'disk', max: 1, allowPooler: false } as const;
  const pool = openPool({ address, ...rest, onError: () => {} });
  const db = onPool(pool);
  await proveDiskSpace(db);
  // as much as the smallest memory for a statement: whatever is beyond that is on the disk
  await db.exec(sql`set temp_file_limit = '64kB'`);
  const error = await proveDiskSpace(db).catch((reason: unknown) => reason);
  const limitExceeded = '53400';
  expect(sqlStateOf(error)).toBe(limitExceeded);
  await pool.end();
});
