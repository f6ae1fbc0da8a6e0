/**
 * The wire contract of Routemaster's clients. Titles quote the reference: section 1.5 to 1.8, and the checklist of 10.3. Requests
 * of routemaster-client are the bytes that it sends (3.2, with Faraday and Typhoeus), recorded from the socket.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { busSubscriberEndpoints } from '../../src/api/bus/endpoints.ts';
import { topicEndpoints } from '../../src/api/bus/topics/endpoints.ts';
import type { Caller } from '../../src/contract/roles.ts';
import type { Endpoint } from '../../src/http/endpoint.ts';
import { sql } from '../../src/kernel/sql.ts';
import { clientOf } from '../harness/bus-subscribers.ts';
import { makeTenantApi, type TenantApi } from '../harness/tenant-api.ts';

let api: TenantApi;
let caller: Caller & { identity: { id: string; name: string } };
beforeAll(async () => {
  api = await makeTenantApi();
});
beforeEach(async () => {
  await api.db.exec(sql`delete from subscriber`);
  caller = clientOf('billing');
});
afterAll(() => api.close());

const callback = 'https://billing.example/events';
const send = (method: string, path: string, body?: unknown, headers = {}) =>
  api.fetch(method, path, { caller, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
const detail = async (answer: Response) => ((await answer.json()) as { detail: string }).detail;
const list = async (as: Caller = caller) =>
  (await (await api.fetch('GET', '/bus/subscriptions', { caller: as })).json()) as Record<string, unknown>[];

describe('POST /subscription', () => {
  it('both spellings subscribe and answer 204 with an empty body', async () => {
    for (const path of ['/bus/subscription', '/bus/subscriber']) {
      const answer = await send('POST', path, { topics: ['orders'], callback });
      expect([answer.status, await answer.text()]).toEqual([204, '']);
    }
    expect(await list()).toHaveLength(1);
  });

  it('the content type of the request is never checked', async () => {
    const answer = await send('POST', '/bus/subscription', { topics: [], callback }, { 'content-type': 'text/plain' });
    expect(answer.status).toBe(204);
    const bus = { ...busSubscriberEndpoints, ...topicEndpoints };
    const checked = Object.entries<Endpoint>(bus).filter(
      ([, { body, ignoresContentType }]) => body !== undefined && body !== 'bytes' && ignoresContentType !== true,
    );
    expect(checked).toEqual([]);
  });

  it('topics that are not an array answer 400 `need an array of topics`', async () => {
    for (const body of [{ callback }, { topics: 'orders', callback }, [], 3]) {
      const answer = await send('POST', '/bus/subscription', body);
      expect(answer.status).toBe(400);
      expect(await detail(answer)).toMatch(/^need an array of topics/);
    }
  });

  it('any other key answers 400 `bad data in payload`, and writes nothing', async () => {
    const bodies = [
      { topics: ['fresh'], callback, colour: 'red' },
      { topics: ['fresh'], callback: 'http://billing.example/' },
      { topics: ['fresh'], callback: `${callback}?a=1` },
      { topics: ['fresh'] },
      { topics: ['fresh'], callback, max: 0 },
      { topics: ['fresh'], callback, max: 10_001 },
      { topics: ['fresh'], callback, timeout: 3_600_001 },
      { topics: ['fresh'], callback, timeout: -1 },
    ];
    for (const body of bodies) {
      const answer = await send('POST', '/bus/subscription', body);
      expect([answer.status, JSON.stringify(body)]).toEqual([400, JSON.stringify(body)]);
      expect(await detail(answer)).toMatch(/^bad data in payload/);
    }
    expect(await list()).toEqual([]);
    expect(await api.db.rows(sql`select from bus_topic where name = 'fresh'`)).toEqual([]);
  });

  it('unknown topics are created without a publisher', async () => {
    await send('POST', '/bus/subscription', { topics: ['brand_new'], callback });
    expect(await api.db.one(sql`select owner from bus_topic where name = 'brand_new'`)).toEqual({ owner: null });
  });

  it('the topic set is replaced; timeout and max keep their values, callback and uuid are overwritten', async () => {
    await send('POST', '/bus/subscription', { topics: ['a', 'b'], callback, uuid: 'u', timeout: 7, max: 3 });
    expect(await list()).toEqual([
      expect.objectContaining({ topics: ['a', 'b'], uuid: 'u', timeout: 7, max_events: 3 }),
    ]);
    await send('POST', '/bus/subscription', { topics: ['b', 'c'], callback: 'https://other.example/' });
    const after = { topics: ['b', 'c'], callback: 'https://other.example/', uuid: null, timeout: 7, max_events: 3 };
    expect(await list()).toEqual([expect.objectContaining(after)]);
  });

  it('an empty array unsubscribes from all and keeps the subscriber', async () => {
    await send('POST', '/bus/subscription', { topics: ['a'], callback });
    expect((await send('POST', '/bus/subscription', { topics: [], callback })).status).toBe(204);
    expect(await list()).toEqual([expect.objectContaining({ topics: [] })]);
  });

  it('timeout is 500 and max is 100 unless they are given', async () => {
    await send('POST', '/bus/subscription', { topics: ['a'], callback });
    expect(await list()).toEqual([expect.objectContaining({ timeout: 500, max_events: 100 })]);
  });

  it('the same subscription again writes no revision', async () => {
    for (let i = 0; i < 2; i++) await send('POST', '/bus/subscription', { topics: ['b', 'a'], callback });
    expect(await api.db.rows(sql`select from subscription`)).toHaveLength(1);
  });
});

describe('GET /subscriptions', () => {
  it('each element has subscriber, uuid, callback, max_events, timeout, topics and events', async () => {
    await send('POST', '/bus/subscription', { topics: ['a'], callback, uuid: 'secret' });
    expect(await list()).toEqual([
      {
        subscriber: expect.stringMatching(/^billing--[0-9a-f]{8}$/) as string,
        uuid: 'secret',
        callback,
        max_events: 100,
        timeout: 500,
        topics: ['a'],
        events: { sent: 0, queued: 0, oldest: null },
        id: expect.any(String) as string,
        kind: 'http',
        state: 'active',
        reason: null,
        health: 100,
        failing_since: null,
        next_attempt_at: null,
      },
    ]);
  });

  it('the uuid of other clients is null', async () => {
    await send('POST', '/bus/subscription', { topics: ['a'], callback, uuid: 'secret' });
    expect(await list(clientOf('other'))).toEqual([expect.objectContaining({ uuid: null })]);
  });

  it('no subscribers are an empty array', async () => {
    expect(await list()).toEqual([]);
  });
});

describe('DELETE /subscriber', () => {
  it('answers 204, then 404 `subscriber not found`', async () => {
    await send('POST', '/bus/subscription', { topics: ['a'], callback });
    expect((await send('DELETE', '/bus/subscriber')).status).toBe(204);
    const again = await send('DELETE', '/bus/subscriber');
    expect([again.status, await detail(again)]).toEqual([404, 'subscriber not found']);
  });

  it('of one topic: 404 `subscriber not found`, `topic not found`, `not subscribed`, in that order, else 204', async () => {
    const drop = async (topic: string) => {
      const answer = await send('DELETE', `/bus/subscriber/topics/${topic}`);
      return answer.status === 204 ? 204 : [answer.status, await detail(answer)];
    };
    expect(await drop('nowhere')).toEqual([404, 'subscriber not found']);
    await send('POST', '/bus/subscription', { topics: ['a', 'b'], callback });
    await send('POST', '/bus/subscription', { topics: ['a'], callback });
    expect(await drop('nowhere')).toEqual([404, 'topic not found']);
    expect(await drop('b')).toEqual([404, 'not subscribed']);
    expect(await drop('a')).toBe(204);
    expect(await list()).toEqual([expect.objectContaining({ topics: [] })]);
  });
});

describe('routemaster-client', () => {
  /** Its headers, and the bodies that Oj makes. */
  const ask = (method: string, path: string, body?: string) =>
    api.fetch(method, path, {
      caller,
      headers: {
        accept: '*/*',
        'user-agent': 'Faraday v1.1.0',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body }),
    });
  const stored = async () =>
    (await api.db.rows<{ body: string }>(sql`select body from bus_event order by seq desc limit 1`))[0]?.body ?? '';

  it('`updated` sends a null timestamp, which is the present time, and wants 2xx', async () => {
    const before = Date.now();
    const sent = '{"type":"update","url":"https://shop.example/widgets/1","timestamp":null}';
    expect((await ask('POST', '/bus/topics/widgets', sent)).status).toBe(200);
    const element = JSON.parse(await stored()) as Record<string, unknown>;
    expect(Object.keys(element)).toEqual(['topic', 'type', 'url', 't', 'id']);
    expect(element).toMatchObject({ topic: 'widgets', type: 'update', url: 'https://shop.example/widgets/1' });
    expect(element['t']).toBeGreaterThanOrEqual(before);
  });

  it('`created` with `t:` and `data:` keeps both as they are', async () => {
    const data = '{"a":[1,null,"ü"]}';
    const sent = `{"type":"create","url":"https://shop.example/widgets/1","timestamp":1700000000000,"data":${data}}`;
    expect((await ask('POST', '/bus/topics/widgets_t', sent)).status).toBe(200);
    expect(await stored()).toMatch(
      /^\{"topic":"widgets_t","type":"create","url":"https:\/\/shop\.example\/widgets\/1","t":1700000000000,"data":\{"a":\[1,null,"ü"\]\},"id":"\d+"\}$/,
    );
  });

  it('an empty `data` is delivered as {}', async () => {
    const sent = '{"type":"noop","url":"https://shop.example/widgets/1","timestamp":null,"data":{}}';
    expect((await ask('POST', '/bus/topics/widgets_data', sent)).status).toBe(200);
    expect(await stored()).toContain('"data":{},');
  });

  it('`subscribe` sends its options in this order, and `uuid: nil` as null', async () => {
    const sent = '{"topics":["widgets"],"callback":"https://x.example/y","uuid":"u","timeout":300,"max":3}';
    expect((await ask('POST', '/bus/subscription', sent)).status).toBe(204);
    expect(await list()).toEqual([expect.objectContaining({ uuid: 'u', timeout: 300, max_events: 3 })]);
    const bare = '{"topics":["widgets"],"callback":"https://x.example/y","uuid":null}';
    expect((await ask('POST', '/bus/subscription', bare)).status).toBe(204);
    expect(await list()).toEqual([expect.objectContaining({ uuid: null, timeout: 300, max_events: 3 })]);
  });

  it('`monitor_topics` fetches name, publisher and events of each topic', async () => {
    await ask('POST', '/bus/topics/monitored', '{"type":"noop","url":"https://shop.example/1","timestamp":null}');
    const topics = (await (await ask('GET', '/bus/topics')).json()) as Record<string, unknown>[];
    expect(topics).toContainEqual(expect.objectContaining({ name: 'monitored', publisher: 'billing', events: 1 }));
    for (const topic of topics)
      for (const field of ['name', 'publisher', 'events']) expect(topic).toHaveProperty(field);
  });

  it('`monitor_subscriptions` fetches subscriber, uuid, callback, topics and events, an object', async () => {
    await ask('POST', '/bus/subscription', '{"topics":["widgets"],"callback":"https://x.example/y"}');
    for (const subscription of await list())
      for (const field of ['subscriber', 'uuid', 'callback', 'topics', 'events'])
        expect(subscription).toHaveProperty(field);
  });

  it('`unsubscribe`, `unsubscribe_all` and `delete_topic` want 2xx, without a body', async () => {
    await ask('POST', '/bus/topics/dropped', '{"type":"noop","url":"https://shop.example/1","timestamp":null}');
    await ask('POST', '/bus/subscription', '{"topics":["dropped"],"callback":"https://x.example/y"}');
    for (const path of ['/bus/subscriber/topics/dropped', '/bus/subscriber', '/bus/topics/dropped'])
      expect([path, (await ask('DELETE', path)).status]).toEqual([path, 204]);
  });

  it('a refusal carries its reason, which the client shows: `event rejected (status: …, reason: …)`', async () => {
    await ask('POST', '/bus/topics/owned', '{"type":"noop","url":"https://shop.example/1","timestamp":null}');
    caller = clientOf('other');
    const refused = await ask(
      'POST',
      '/bus/topics/owned',
      '{"type":"noop","url":"https://shop.example/1","timestamp":null}',
    );
    expect(refused.status).toBe(403);
    expect(await detail(refused)).toMatch(/^topic claimed/);
  });
});
