/** Activity of the bus over time: the history of lag. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clientOf } from '../../../../test/harness/bus-subscribers.ts';
import { makeTenantApi, type TenantApi } from '../../../../test/harness/tenant-api.ts';
import { sampleLag } from '../../../bus/lag.ts';
import { sql } from '../../../kernel/sql.ts';

const minuteMs = 60_000;

let api: TenantApi;
const ids: string[] = [];
beforeAll(async () => {
  api = await makeTenantApi();
  await api.db.exec(
    sql`insert into bus_topic (name, owner_name, created_at)
        select name, 'tests', ${new Date()} from unnest(array['orders', 'invoices']) as name`,
  );
  for (const [name, topics] of [
    ['billing', ['orders']],
    ['crm', ['orders', 'invoices']],
  ] as const) {
    const call = api.as(clientOf(name));
    await call('POST /bus/subscription', { body: { topics: [...topics], kind: 'pull', timeout: 0 } });
    ids.push((await call('GET /bus/subscriber', {})).id);
  }
  // the beginning of a minute, so that the calls of a test fall into the same minute
  api.advance(minuteMs + 1_000 - (api.ctx.time.now() % minuteMs));
});
afterAll(() => api.close());

async function sample(queued: readonly number[], agoMs: number): Promise<void> {
  const atMs = api.ctx.time.now() - agoMs;
  for (const [i, id] of ids.entries()) {
    const count = queued[i] ?? 0;
    const oldestAt = count === 0 ? null : new Date(atMs - (i + 1) * 1_000);
    await api.db.exec(sql`update reader set queued = ${count}, oldest_at = ${oldestAt} where subscriber_id = ${id}`);
  }
  await sampleLag(api.db, atMs);
}

const lagOf = async (query: { minutes: number; subscriber?: string; topic?: string }) =>
  (await api.call('GET /bus/activity', { query })).items.map(({ queued, oldest_age }) => [queued, oldest_age]);

it('a step has the lag of one subscriber, or of all together, and the last step the present lag', async () => {
  await sample([5, 7], 3 * minuteMs);
  await sample([0, 9], 2 * minuteMs);
  await sample([0, 4], 0);
  // not sampled again: read from the readers
  await api.db.exec(sql`update reader set queued = queued + 1 where queued > 0`);
  expect(await lagOf({ minutes: 4 })).toEqual([
    [12, 2_000],
    [9, 2_000],
    [0, null],
    [5, expect.any(Number)],
  ]);
  expect(await lagOf({ minutes: 4, subscriber: ids[0] ?? '' })).toEqual([
    [5, 1_000],
    [0, null],
    [0, null],
    [0, null],
  ]);
  // of the subscribers that receive the topic
  const queuedOf = async (topic: string) => (await lagOf({ minutes: 4, topic })).map(([queued]) => queued);
  expect(await queuedOf('orders')).toEqual([12, 9, 0, 5]);
  expect(await queuedOf('invoices')).toEqual([7, 9, 0, 5]);
  expect(await queuedOf('unknown')).toEqual([0, 0, 0, 0]);
  // the most of a longer step, and not the sum of its minutes
  const inDay = (await lagOf({ minutes: 1_440 })).find(([queued]) => queued !== 0);
  expect(inDay?.[0]).toBe(12);
});
