import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FreshDatabase, makeFreshDatabase } from '../test/harness/fresh-database.ts';
import { onDatabase } from '../src/postgres/address.ts';
import { withClient } from '../src/postgres/databases.ts';
import { type Server, startServer } from './server.ts';

let existing: FreshDatabase;
let server: Server;
beforeAll(async () => {
  existing = await makeFreshDatabase();
  server = await startServer({ database: existing.address.url });
});
afterAll(() => existing.close());

async function exists(database: string): Promise<boolean> {
  const { rowCount } = await withClient(existing.address, (client) =>
    client.query('select from pg_database where datname = $1', [database]),
  );
  return rowCount === 1;
}

it('A benchmark refuses to touch a database that the server of --database had before', async () => {
  const { database } = existing.address;
  await expect(server.fresh(database)).rejects.toThrow(`already has ${database}`);
  await expect(server.drop(database)).rejects.toThrow(`already has ${database}`);
  expect(() => server.reserve('bench_other', database)).toThrow(`already has ${database}`);
  expect(await exists(database)).toBe(true);
});

it('A benchmark drops its own databases at the end, and those that the product has made for it', async () => {
  const suffix = `${process.pid}`;
  const [own, made] = [`bench_own_${suffix}`, `bench_made_${suffix}`];
  expect(await server.fresh(own)).toEqual(onDatabase(existing.address, own));
  server.reserve(made);
  await withClient(existing.address, (client) => client.query(`create database ${made}`));
  expect([await exists(own), await exists(made)]).toEqual([true, true]);
  await server.stop();
  expect([await exists(own), await exists(made)]).toEqual([false, false]);
});
