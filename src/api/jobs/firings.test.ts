/** The triggers of a job, with their next firings and the instants left to catch up. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { refusal } from '../../../test/harness/expected.ts';
import { makeJob } from '../../../test/harness/runs.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

const dayMs = 86_400_000;
const today = Math.floor(Date.now() / dayMs);
let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
  // at noon, so that nothing becomes due during a test
  api.advance(today * dayMs + dayMs / 2 - Date.now());
});
afterAll(() => api.close());

const midnight = (days: number): string => new Date((today + days) * dayMs).toISOString();
const firings = (id: string, query: object = {}) => api.call('GET /api/jobs/{id}/firings', { params: { id }, query });

it('each trigger has the next firings of its preview, and the instants left of a catch-up', async () => {
  const job = await makeJob(api, {
    triggers: [
      { name: 'daily', start: midnight(-20), period: '1d', offset: '1h' },
      { name: 'berlin', start: midnight(-20), cron: '30 6 * * *', timezone: 'Europe/Berlin', catchup: 'none' },
    ],
  });
  await api.db.exec(sql`
    insert into catchup (trigger_id, from_at, to_at, policy, pieces, seed)
    values (${job.triggers['daily']}, ${midnight(-9)}, ${midnight(1)}, 'earliest', 1, 1)`);
  const { paused, items } = await firings(job.id, { count: 3 });
  expect(paused).toBe(false);
  expect(items.map(({ trigger_name, catching_up }) => [trigger_name, catching_up])).toEqual([
    ['berlin', 0],
    ['daily', 10],
  ]);
  for (const { trigger_id: id, next } of items) {
    const preview = await api.call('GET /api/triggers/{id}/preview', { params: { id }, query: { count: 3 } });
    expect(next).toEqual(preview.items);
    expect(next).toHaveLength(3);
  }
  const [listed] = await api.call('GET /api/jobs/{id}/triggers', { params: { id: job.id } });
  expect(items[0]).toMatchObject(listed ?? { none: true });
});

it('the firings of a paused job are listed as if it were unpaused now', async () => {
  const job = await makeJob(api, { paused: true, triggers: [{ name: 't', start: midnight(2), period: '1d' }] });
  const { paused, items } = await firings(job.id);
  expect(paused).toBe(true);
  expect(items[0]?.next.map(({ instant }) => instant)).toEqual([2, 3, 4, 5, 6].map(midnight));
});

it('very many triggers have fewer firings each, and at least one', async () => {
  const triggers = Array.from({ length: 101 }, (_, n) => ({ name: `t${n}`, start: midnight(2), period: '1d' }));
  const job = await makeJob(api, { triggers });
  const { items } = await firings(job.id, { count: 100 });
  expect(items).toHaveLength(101);
  expect(new Set(items.map(({ next }) => next.length))).toEqual(new Set([19]));
});

it('an unknown job is not found, and more than a hundred firings are rejected', async () => {
  await expect(firings(newId())).rejects.toEqual(refusal(404));
  const job = await makeJob(api);
  await expect(firings(job.id, { count: 101 })).rejects.toEqual(refusal(400));
  expect(await firings(job.id)).toEqual({ paused: false, items: [] });
});
