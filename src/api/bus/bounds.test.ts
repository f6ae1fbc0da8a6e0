/** Bounds of calls of the bus: subscriptions of a tenant, the events of a dead letter, and requests that wait. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { appendBusEvents, clientOf, countForReaders } from '../../../test/harness/bus-subscribers.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
let caller: ReturnType<typeof clientOf>;
let call: TenantApi['call'];
beforeAll(async () => {
  api = await makeTenantApi();
});
beforeEach(async () => {
  await api.db.exec(sql`delete from subscriber`);
  caller = clientOf('shop');
  call = api.as(caller);
  await call('POST /bus/subscription', { body: { topics: ['orders'], callback: 'https://shop.example/events' } });
});
afterAll(() => api.close());

const me = () => call('GET /bus/subscriber', {});

it('a subscription is not changed while those of the tenant are larger than couriers may keep', async () => {
  const { id } = await me();
  await api.db.exec(sql`
    insert into subscription (
      subscriber_id, from_seq, origin_seq, version, topics, filter, max_events, max_bytes, window_ms, quiet, strands, ordering)
    select ${id}, -n, -n, -n, '{}', ${{ type: 'x'.repeat(8_000) }}::jsonb, 9, 1024, 0, false, 1, 'subscriber'
      from generate_series(1, 600) as n`);
  const change = async (body: object): Promise<number> =>
    (await api.fetch('PATCH', '/bus/subscriber', { caller, body: JSON.stringify(body) })).status;
  expect([await change({ max: 7 }), await change({ max: 100 })]).toEqual([409, 200]);
  expect((await me()).max_events).toBe(100);
  await api.db.exec(sql`delete from subscription where from_seq < 0`);
  expect(await change({ max: 7 })).toBe(200);
});

it('the events of a dead letter are shown up to a megabyte', async () => {
  const { id } = await me();
  const element = { topic: 'orders', type: 'update', url: 'https://shop.example/1', t: 1, id: '5' };
  const show = async (body: object[] | null) => {
    const letter = newId();
    await api.db.exec(sql`
      insert into dead_letter (id, subscriber_id, batch, first_seq, last_seq, events, body, code, attempts, at)
      values (${letter}, ${id}, ${letter}, 5, 6, 2, ${body && JSON.stringify(body)}, 'timeout', 3, ${new Date()})`);
    return call('GET /bus/dead_letters/{id}', { params: { id: letter } });
  };
  expect(await show([element])).toMatchObject({ body: [element], complete: true });
  expect(await show(null)).toMatchObject({ body: null, complete: true });
  const large = { ...element, data: { text: 'x'.repeat(300_000) } };
  const shown = await show([large, large, large, large]);
  expect([shown.body?.length, shown.complete]).toEqual([3, false]);
});

it('of the requests of one key that wait, a hundred are accepted, and those of another key are', async () => {
  const publish = async (): Promise<number> => {
    const [number = 0] = await appendBusEvents(api.db, [{ topic: 'orders' }]);
    await countForReaders(api.db);
    return number;
  };
  const last = await publish();
  const wait = (as: typeof caller) => api.fetch('GET', `/bus/events?after=${last}&wait=60`, { caller: as });
  const waiting = Array.from({ length: 110 }, () => wait(caller));
  const refused = (await Promise.race(waiting)).status;
  const other = wait(clientOf('another'));
  await publish();
  const statuses = (await Promise.all(waiting)).map(({ status }) => status);
  expect([refused, statuses.filter((status) => status === 200).length, (await other).status]).toEqual([429, 100, 200]);
  expect((await wait(caller)).status).toBe(200);
});
