import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import { onPool, sql } from '../kernel/sql.ts';
import { DisciplinedTime } from '../kernel/time.ts';
import { clock, measure } from './clock.ts';
import { openPool } from './pool/pool.ts';

let database: TenantDatabase;
beforeAll(async () => {
  database = await makeTenantDatabase();
});
afterAll(() => database.close());

/** How far the clock is ahead of the server's, at least and at most: nobody knows when between the two looks it spoke. */
async function ahead(time: DisciplinedTime): Promise<{ least: number; most: number }> {
  const before = time.now();
  const { ms } = await database.db.one<{ ms: number }>(sql`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`);
  return { least: before - ms, most: time.now() - ms };
}

describe('a clock', () => {
  it('is known once it has started, and shows the server’s time', async () => {
    const time = new DisciplinedTime();
    const service = clock(database.db, time, () => {});
    await service.start();
    await service.start();
    expect(time.known).toBe(true);
    const { least, most } = await ahead(time);
    expect(least).toBeLessThan(500);
    expect(most).toBeGreaterThan(-500);
    await service.stop();
    await service.stop();
  });

  it('does not start when the server does not answer', async () => {
    const { address } = database;
    const rest = { schema: 'millrace', application: 'x', max: 1, allowPooler: false } as const;
    const pool = openPool({ address: { ...address, url: `${address.url}x` }, ...rest, onError: () => {} });
    await pool.end();
    const time = new DisciplinedTime();
    await expect(clock(onPool(pool), time, () => {}).start()).rejects.toThrow('pool');
    expect(time.known).toBe(false);
  });

  it('is not put ahead by a wait for a connection: a timer would ring early', async () => {
    const { address } = database;
    const rest = { schema: 'millrace', application: 'one', max: 1, allowPooler: false } as const;
    const pool = openPool({ address, ...rest, onError: () => {} });
    const time = new DisciplinedTime();
    const busy = onPool(pool).exec(sql`select pg_sleep(3)`);
    await measure(onPool(pool), time);
    await busy;
    // half of the wait, if it counted
    expect((await ahead(time)).least).toBeLessThan(750);
    await pool.end();
  });
});
