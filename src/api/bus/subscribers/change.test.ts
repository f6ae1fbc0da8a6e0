/** Changes of single fields of a subscriber. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clientOf } from '../../../../test/harness/bus-subscribers.ts';
import { makeTenantApi, type TenantApi } from '../../../../test/harness/tenant-api.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

it('null restores the default of a field', async () => {
  const call = api.as(clientOf('shop'));
  const limits = { max: 7, timeout: 9, quiet: true, strands: 4, max_bytes: 2_048, rate: 5 };
  const callback = 'https://shop.example/events';
  await call('POST /bus/subscription', { body: { topics: ['orders'], callback, ...limits } });
  const nothing = { max: null, timeout: null, quiet: null, ordering: null, strands: null, max_bytes: null, rate: null };
  expect(await call('PATCH /bus/subscriber', { body: nothing })).toMatchObject({
    max_events: 100,
    timeout: 500,
    quiet: false,
    ordering: 'subscriber',
    strands: 1,
    max_bytes: 1024 * 1024,
    rate: null,
  });
});
