import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FreshDatabase, makeFreshDatabase } from '../../test/harness/fresh-database.ts';
import { onPool, sql } from '../kernel/sql.ts';
import { retryUntilServerAnswers } from './wait-for-server.ts';
import { closePool, openPool } from './pool/pool.ts';

let database: FreshDatabase;
beforeAll(async () => {
  database = await makeFreshDatabase();
});
afterAll(() => database.close());

it('what fails because its connection is lost is tried again; what the server refuses is not', async () => {
  const rest = { application: 'millrace test', max: 1, allowPooler: false, onError: () => {} } as const;
  const pool = openPool({ address: database.address, schema: 'control', ...rest });
  const db = onPool(pool);
  let tries = 0;
  const work = async (): Promise<unknown> =>
    tries++ < 2 ? db.one(sql`select pg_terminate_backend(pg_backend_pid())`) : db.one(sql`select 1 as n`);
  expect(await retryUntilServerAnswers(work)).toEqual({ n: 1 });
  expect(tries).toBe(3);
  let refused = 0;
  const wrong = (): Promise<unknown> => {
    refused++;
    return db.one(sql`select 1 / 0`);
  };
  await expect(retryUntilServerAnswers(wrong)).rejects.toMatchObject({ code: '22012' });
  expect(refused).toBe(1);
  await closePool(pool);
});

it('who is to end waits no longer', async () => {
  const ending = new AbortController();
  let tries = 0;
  const away = (): Promise<never> => {
    if (++tries === 3) ending.abort();
    return Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }));
  };
  await expect(retryUntilServerAnswers(away, ending.signal)).rejects.toThrow('away');
  expect(tries).toBe(3);
});
