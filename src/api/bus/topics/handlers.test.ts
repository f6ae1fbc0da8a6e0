/** The list of topics, which the database renders. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clientOf } from '../../../../test/harness/bus-subscribers.ts';
import { makeTenantApi, type TenantApi } from '../../../../test/harness/tenant-api.ts';

const caller = clientOf('shop');
let api: TenantApi;
let call: TenantApi['call'];
beforeAll(async () => {
  api = await makeTenantApi();
  call = api.as(caller);
});
afterAll(() => api.close());

it('a list of topics has those without an owner, and times as everywhere', async () => {
  await call('POST /bus/subscription', { body: { topics: ['listed'], callback: 'https://shop.example/events' } });
  const created_at: unknown = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const counts = { events: 0, last_minute: 0, subscribers: 1 };
  const topics = await call('GET /bus/topics', {});
  expect(topics.filter(({ name }) => name === 'listed')).toEqual([
    { name: 'listed', publisher: null, owner: null, created_at, ...counts },
  ]);
});
