/** Activity in steps of whole minutes, including steps without activity. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { activate, claim, finish, makeJob, runAll } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { sql } from '../../kernel/sql.ts';
import { stepsOf } from './activity.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
  // the clock starts at the beginning of a minute
  api.advance(minute - (api.ctx.time.now() % minute));
});
afterAll(() => api.close());

const minute = 60_000;
const at = '2026-03-01T00:00:00.000Z';
const iso = (ms: number): string => new Date(ms).toISOString();
const activity = (query: { minutes?: number; until?: string }) => api.call('GET /api/activity', { query });

const empty = { success: 0, failure: 0, timeout: 0, error: 0, cancelled: 0, fired: 0 };
const unknown = { late_mean: null, late_worst: null, wait_mean: null, wait_worst: null };

async function happened(time: string, row: Partial<typeof empty> & { ms?: readonly number[] }): Promise<void> {
  const { success, failure, timeout, error, cancelled, fired } = { ...empty, ...row };
  const [wait = 0, worstWait = 0, late = 0, worstLate = 0] = row.ms ?? [];
  const ms = (n: number) => sql`${n}::integer * interval '1 millisecond'`;
  await api.db.exec(sql`
    insert into activity (at, success, failure, timeout, error, cancelled, started, wait, worst_wait, fired, late, worst_late)
    values (${time}, ${success}, ${failure}, ${timeout}, ${error}, ${cancelled}, ${success + failure + timeout + error},
            ${ms(wait)}, ${ms(worstWait)}, ${fired}, ${ms(late)}, ${ms(worstLate)})`);
}

describe('activity', () => {
  it('by default, the activity covers the last hour, minute by minute', async () => {
    const job = await makeJob(api);
    await activate(api, job.tasks['only'], at);
    const runs = await claim(api);
    api.advance(2 * minute);
    await finish(api, runs, 'failure');
    api.advance(minute);
    await activate(api, job.tasks['only'], at);
    await runAll(api);
    const { step, items } = await activity({});
    const now = Math.floor(api.ctx.time.now() / minute) * minute;
    expect(step).toBe(1);
    expect(items.map((item) => item.at)).toEqual(Array.from({ length: 60 }, (_, i) => iso(now - (59 - i) * minute)));
    expect(items.at(-1)).toMatchObject({ success: 1, failure: 0 });
    expect(items.at(-2)).toMatchObject({ success: 0, failure: 1 });
    expect(items.at(-2)?.wait_mean).toBeGreaterThanOrEqual(2 * minute);
    expect(items.slice(0, -2)).toEqual(items.slice(0, -2).map((item) => ({ at: item.at, ...empty, ...unknown })));
  });

  it('longer steps contain sums, means over all runs, and the worst of all', async () => {
    await happened('2026-03-01T00:01:00Z', { success: 3, cancelled: 5, ms: [600, 400] });
    await happened('2026-03-01T00:04:00Z', { error: 1, timeout: 1, fired: 4, ms: [400, 300, 100, 70] });
    await happened('2026-03-01T00:05:00Z', { cancelled: 2, fired: 1, ms: [0, 0, 8, 8] });
    const { step, items } = await activity({ minutes: 1440, until: '2026-03-01T00:09:30Z' });
    expect(step).toBe(5);
    expect(items).toHaveLength(288);
    expect(items.at(-2)).toEqual({
      at,
      ...empty,
      success: 3,
      error: 1,
      timeout: 1,
      cancelled: 5,
      fired: 4,
      late_mean: 25,
      late_worst: 70,
      wait_mean: 200,
      wait_worst: 400,
    });
    expect(items.at(-1)).toEqual({
      at: '2026-03-01T00:05:00.000Z',
      ...empty,
      ...unknown,
      cancelled: 2,
      fired: 1,
      late_mean: 8,
      late_worst: 8,
    });
  });

  it('a range that ends with a step has no further step', async () => {
    const { items } = await activity({ minutes: 2, until: '2026-03-01T00:05:00Z' });
    expect(items.map((item) => item.at)).toEqual(['2026-03-01T00:03:00.000Z', '2026-03-01T00:04:00.000Z']);
  });

  it.each([
    [1, 1, 1],
    [360, 1, 360],
    [361, 2, 181],
    [1440, 5, 288],
    [10_080, 30, 336],
    [43_200, 120, 360],
  ])('the activity of %i minutes has steps of %i', (minutes, length, count) => {
    const { stepMs, fromMs, toMs } = stepsOf(minutes, Date.parse('2026-03-01T13:37:11.5Z'));
    expect([stepMs / minute, (toMs - fromMs) / stepMs]).toEqual([length, count]);
    expect(fromMs % stepMs).toBe(0);
  });

  it('the activity has at most 360 steps, which cover the whole range', () => {
    const until = Date.parse('2026-03-01T13:37:11.5Z');
    for (let minutes = 1; minutes <= 43_200; minutes += 7) {
      const { stepMs, fromMs, toMs } = stepsOf(minutes, until);
      expect((toMs - fromMs) / stepMs).toBeLessThanOrEqual(360);
      expect(toMs).toBeGreaterThanOrEqual(until);
      expect(toMs - fromMs).toBeGreaterThanOrEqual(minutes * minute);
    }
  });

  it.each(['minutes=0', 'minutes=43201', 'minutes=x', 'until=yesterday'])('the query %s is rejected', async (query) => {
    const answer = await api.fetch('GET', `/api/activity?${query}`, { caller: keyOf('viewer') });
    expect(answer.status).toBe(400);
    expect(await answer.text()).toContain(query.split('=')[0]);
  });
});
