/** The list of topics, which the database renders, and what the audit says of their changes. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clientOf } from '../../../../test/harness/bus-subscribers.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../../test/harness/tenant-api.ts';
import { newId } from '../../../kernel/id.ts';
import { sql } from '../../../kernel/sql.ts';

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

it('deleting a topic and giving it to another key are in the audit and on the topic of the bus', async () => {
  const operator = api.as(keyOf('operator'));
  const identity = newId();
  await call('POST /bus/subscription', {
    body: { topics: ['given', 'gone'], callback: 'https://shop.example/events' },
  });
  await operator('PUT /bus/topics/{name}/owner', {
    params: { name: 'given' },
    body: { id: identity, name: 'billing' },
  });
  await operator('DELETE /bus/topics/{name}', { params: { name: 'gone' } });
  const { items } = await operator('GET /api/audit', { query: {} });
  const topics = await api.db.rows(sql`select topic_id, type from event where type like 'topic.%'`);
  expect(topics).toEqual([
    { topic_id: 5, type: 'topic.transferred' },
    { topic_id: 5, type: 'topic.deleted' },
  ]);
  expect(
    items.filter(({ type }) => type.startsWith('topic.')).map(({ type, actor, body }) => [type, actor, body]),
  ).toEqual([
    ['topic.deleted', expect.stringMatching(/^key:/), { topic: 'gone' }],
    ['topic.transferred', expect.stringMatching(/^key:/), { topic: 'given', identity, before: null }],
  ]);
});
