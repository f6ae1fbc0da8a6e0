import { afterAll, beforeAll, expect, it } from 'vitest';
import { type FreshDatabase, makeFreshDatabase } from '../test/harness/fresh-database.ts';
import { fire, makeJob, runAll } from '../test/harness/runs.ts';
import { makeTenantApi, type TenantApi } from '../test/harness/tenant-api.ts';
import { openRaw } from './raw.ts';
import { rowCounts } from './row-counts.ts';

let api: TenantApi;
let database: FreshDatabase;
beforeAll(async () => {
  [api, database] = await Promise.all([makeTenantApi(), makeFreshDatabase()]);
});
afterAll(async () => {
  await api.close();
  await database.close();
});

it('the raw writer inserts and updates the requested number of rows per thousand runs in every table', async () => {
  const names = Array.from({ length: 10 }, (_, n) => `t${n}`);
  const job = await makeJob(api, {
    triggers: names.map((name) => ({ name, start: '9000-01-01T00:00:00Z', period: '1h' })),
    tasks: [{ name: 'a', depends: ['trigger/t0'] }],
  });
  await fire(api, job.triggers['t0'], '2026-01-01T00:00:00Z');
  await runAll(api);
  await fire(api, job.triggers['t0'], '2026-01-02T00:00:00Z');
  const raw = await openRaw(database.address);
  await raw.sample(api.db);
  const { runs } = await raw.write(300, { firings: 4, triggerUpdates: 10, tokenUpdates: 3 });
  await raw.close();
  const written = await rowCounts(database.address);
  const thousands = runs / 1_000;
  expect(thousands).toBeGreaterThanOrEqual(2);
  expect(written.get('firing')?.inserted).toBe(4 * thousands);
  expect(written.get('trigger')?.updated).toBe(10 * thousands);
  expect(written.get('token')).toMatchObject({ inserted: runs, updated: 3 * thousands });
  expect(written.get('live')).toEqual({ inserted: runs, updated: runs, deleted: runs });
  expect(written.get('run')?.inserted).toBe(runs);
  expect(written.get('event')?.inserted).toBe(2 * runs);
});
