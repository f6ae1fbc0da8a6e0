/** Which ranges a replay may have. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { appendBusEvents, clientOf } from '../../../../test/harness/bus-subscribers.ts';
import { makeTenantApi, type TenantApi } from '../../../../test/harness/tenant-api.ts';

const caller = clientOf('shop');
let api: TenantApi;
let call: TenantApi['call'];
beforeAll(async () => {
  api = await makeTenantApi();
  call = api.as(caller);
});
afterAll(() => api.close());

it('a replay of a range that has no order, or begins after the newest event, is refused', async () => {
  await call('POST /bus/subscription', { body: { topics: ['orders'], callback: 'https://shop.example/events' } });
  const at = new Date();
  const [first = 0, last = 0] = await appendBusEvents(api.db, [
    { topic: 'orders', at },
    { topic: 'orders', at },
  ]);
  const later = new Date(at.getTime() + 3_600_000).toISOString();
  const sooner = '2020-01-01T00:00:00Z';
  const refused: [object, string][] = [
    [{ from: String(last), to: String(first) }, 'body.to: is before `from`'],
    [{ from: String(first), to: '0' }, 'body.to: is before `from`'],
    [{ from: String(first), to: sooner }, 'body.to: is before `from`'],
    [{ from: sooner, to: '2019-01-01T00:00:00Z' }, 'body.to: is before `from`'],
    [{ from: String(last + 1) }, `body.from: is after the newest event, which has the number ${last}`],
    [{ from: String(last + 1), to: String(last + 5) }, `body.from: is after the newest event`],
    [{ from: later }, `body.from: is after the newest event`],
    [{ from: true }, 'body.from: must be the number of an event, or a time as 2026-01-31T12:00:00Z'],
    [{ from: 'yesterday' }, 'body.from: must be the number of an event, or a time as 2026-01-31T12:00:00Z'],
  ];
  for (const [body, detail] of refused) {
    const answer = await api.fetch('POST', '/bus/subscriber/replays', { caller, body: JSON.stringify(body) });
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(detail)]);
  }
  expect((await call('GET /bus/subscriber/replays', {})).items).toEqual([]);
  const accepted = [{ from: String(last) }, { from: first, to: first }, { from: sooner, to: later }];
  for (const body of accepted) await call('POST /bus/subscriber/replays', { body });
  expect((await call('GET /bus/subscriber/replays', {})).items.map(({ from, to }) => [from, to]).toReversed()).toEqual([
    [String(last - 1), String(last)],
    [String(first - 1), String(first)],
    ['0', String(last)],
  ]);
});
