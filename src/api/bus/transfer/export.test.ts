/** The export of subscribers is rendered by the database: no filter is parsed in the process that answers all other requests. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clientOf } from '../../../../test/harness/bus-subscribers.ts';
import { makeTenantApi, type TenantApi } from '../../../../test/harness/tenant-api.ts';
import type { Db } from '../../../kernel/sql.ts';
import { exportSealable, exportSubscribers } from './queries.ts';

let api: TenantApi;
const filter = { type: ['create', 'update'], 'data.n': { $gte: 3 } };
beforeAll(async () => {
  api = await makeTenantApi();
  for (const name of ['billing', 'crm']) {
    const callback = `https://example.com/${name}`;
    await api.as(clientOf(name))('POST /bus/subscription', {
      body: { topics: ['orders'], callback, uuid: name, filter },
    });
  }
});
afterAll(() => api.close());

/** Values of all rows that the database returned. */
async function valuesOf(work: (db: Db) => Promise<unknown>): Promise<unknown[]> {
  const rows: object[] = [];
  const keep = <Row>(found: Row): Row => {
    rows.push(...([found].flat() as object[]));
    return found;
  };
  await work({
    ...api.db,
    rows: async (query) => keep(await api.db.rows(query)),
    one: async (query) => keep(await api.db.one(query)),
  });
  return rows.flatMap((row) => Object.values(row) as unknown[]);
}

it('the statements of an export return text and credentials, and no parsed value', async () => {
  const plain = await valuesOf((db) => exportSubscribers(db, 10));
  expect(plain.map((value) => typeof value)).toEqual(['number', 'string']);
  const sealable = await valuesOf((db) => exportSealable(db, 10));
  const isPlain = (value: unknown): boolean =>
    typeof value === 'string' || value instanceof Buffer || (Array.isArray(value) && value.length === 0);
  expect(sealable).toHaveLength(8);
  expect(sealable.filter((value) => !isPlain(value))).toEqual([]);
});

it('an export with and one without a passphrase differ in the credentials alone', async () => {
  const plain = await api.call('GET /bus/export', {});
  const sealed = await api.call('POST /bus/export', { body: { passphrase: 'correct horse battery' } });
  expect(plain.subscribers.map(({ name, filter: own }) => [name.split('--')[0], own])).toEqual([
    ['billing', filter],
    ['crm', filter],
  ]);
  expect(sealed.subscribers.map((each) => ({ ...each, sealed: null }))).toEqual(plain.subscribers);
  expect(sealed.subscribers.map((each) => each.sealed?.slice(0, 3))).toEqual(['v1.', 'v1.']);
});
