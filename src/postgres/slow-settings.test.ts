import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FreshDatabase, makeFreshDatabase } from '../../test/harness/fresh-database.ts';
import { onPool } from '../kernel/sql.ts';
import { quoted, withClient } from './databases.ts';
import { openPool } from './pool/pool.ts';
import { findSlowSettings, readServerSpeed } from './slow-settings.ts';

describe('findSlowSettings', () => {
  it.each([
    ['jit', 'on', 'off'],
    ['autovacuum', 'off', 'on'],
    ['track_counts', 'off', 'on'],
    ['shared_buffers', '8191', '8192'],
    ['max_connections', '49', '50'],
    ['log_statement', 'all', 'ddl'],
    ['log_min_duration_statement', '0', '-1'],
    ['enable_nestloop', 'off', 'on'],
  ])('names %s where it is %s, and not where it is %s', (name, slow, well) => {
    expect(findSlowSettings([{ name, value: 'as shown', setting: slow }])).toEqual([
      { name, value: 'as shown', advice: expect.stringContaining(`set ${name}`) as string },
    ]);
    expect(findSlowSettings([{ name, value: 'as shown', setting: well }])).toEqual([]);
  });

  it('leaves other settings alone, such as synchronous_commit', () => {
    expect(findSlowSettings([{ name: 'synchronous_commit', value: 'off', setting: 'off' }])).toEqual([]);
  });
});

describe('A session of a pool', () => {
  let database: FreshDatabase;
  let pool: Pool;
  beforeAll(async () => {
    database = await makeFreshDatabase();
    const name = quoted(database.address.database);
    await withClient(database.address, (client) =>
      client.query(`alter database ${name} set jit = on; alter database ${name} set enable_sort = off`),
    );
    const { address } = database;
    const rest = { schema: 'control', application: 'test', max: 1, allowPooler: false, onError: () => {} } as const;
    pool = openPool({ address, ...rest });
  });
  afterAll(async () => {
    await pool.end();
    await database.close();
  });

  it('turns jit off by itself, and names a setting that it leaves to the server', async () => {
    expect(await readServerSpeed(onPool(pool))).toEqual({
      version: expect.stringMatching(/^\d+\.\d+/) as string,
      slow: [{ name: 'enable_sort', value: 'off', advice: expect.stringContaining('set enable_sort = on') as string }],
    });
  });
});
