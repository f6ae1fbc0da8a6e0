import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Fleet, makeFleet, opened } from '../../../test/harness/fleet.ts';
import { makeTestGateway, type TestGateway } from '../../../test/harness/gateway.ts';
import { openRaw } from '../../../test/harness/raw-http.ts';
import { until } from '../../../test/harness/until.ts';
import { engine } from '../../engine/engine.ts';
import { onPool, sql } from '../../kernel/sql.ts';
import { makeTelemetry } from '../../kernel/telemetry.ts';
import { guards } from '../routing/gateway.ts';
import { type Listener, makeListener } from '../routing/listener.ts';
import { makeBusFetch } from './bus-fetch.ts';
import { BatchTurns } from '../claims/batch-turns.ts';
import { PublishDesk } from './publish-desk.ts';
import { makePublishRoute } from './publish-route.ts';

let fleet: Fleet;
let gateway: TestGateway;
let below: Listener;
let root: Listener;
const listeners: Listener[] = [];

async function listen(test: TestGateway, where: 'below' | 'root', desk = test.context.publishing): Promise<Listener> {
  const { context } = test;
  const publish = makePublishRoute(
    {
      admissions: context.admissions,
      desk,
      bodies: test.gateway.bodies,
      rejectedCredentials: context.rejectedCredentials,
      telemetry: makeTelemetry(() => {}),
      guards,
      explain: (error, caller) => test.gateway.explain(error, caller),
    },
    where,
  );
  const fetchAtRoot = where === 'root' ? { fetch: makeBusFetch(test.gateway, context) } : {};
  const listener = makeListener({
    gateway: test.gateway,
    publish,
    ...fetchAtRoot,
    host: '127.0.0.1',
    port: 0,
    tls: undefined,
  });
  await listener.start();
  listeners.push(listener);
  return listener;
}

beforeAll(async () => {
  fleet = await makeFleet(['default', 'shop']);
  gateway = makeTestGateway(fleet);
  below = await listen(gateway, 'below');
  root = await listen(gateway, 'root');
});
afterAll(async () => {
  await Promise.all(listeners.map((each) => each.stop(performance.now() + 5_000)));
  await fleet.close();
});

const event = { type: 'update', url: 'https://example.com/1' };

async function send(
  listener: Listener,
  path: string,
  { key, body = JSON.stringify(event), headers = {} }: { key?: string; body?: string; headers?: object } = {},
) {
  const authorization = key === undefined ? {} : { authorization: `Basic ${btoa(`${key}:x`)}` };
  const answer = await fetch(listener.url() + path, {
    method: 'POST',
    headers: { ...authorization, ...headers },
    body,
  });
  const text = await answer.text();
  return { answer, json: JSON.parse(text) as { id?: string; code?: string; detail?: string; first?: string } };
}

const countIn = async (tenant: string): Promise<number> => {
  const { ctx } = await opened(fleet.loader, tenant);
  return (await onPool(ctx.pool).one<{ n: number }>(sql`select count(*)::integer as n from bus_event`)).n;
};

it('an event is stored at the tenant of the path, and the answer has the headers of every answer', async () => {
  const key = await gateway.key('client', 'shop');
  const before = await countIn('default');
  const { answer, json } = await send(below, '/t/shop/bus/topics/orders', { key });
  expect(answer.status).toBe(200);
  expect(json).toEqual({ id: '1' });
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  expect([await countIn('shop'), await countIn('default')]).toEqual([1, before]);
});

it('at the root of its own listener, the key determines the tenant, for publishing and for other calls', async () => {
  const key = await gateway.key('client', 'shop');
  const before = await countIn('shop');
  expect((await send(root, '/topics/at_root', { key })).answer.status).toBe(200);
  expect(await countIn('shop')).toBe(before + 1);
  const headers = { authorization: `Bearer ${key}` };
  const topics = (await (await fetch(`${root.url()}/topics`, { headers })).json()) as { name: string }[];
  expect(topics.map(({ name }) => name)).toContain('at_root');
  expect((await fetch(`${root.url()}/pulse`, { headers })).status).toBe(204);
  expect((await fetch(`${root.url()}/health`)).status).toBe(200);
  expect((await fetch(`${root.url()}/topics`)).status).toBe(401);
});

it('at the root of its own listener, a refused key is recorded, and every answer has the headers of every answer', async () => {
  const count = async (): Promise<number> => {
    await gateway.context.rejectedCredentials.endPeriod();
    return (
      await fleet.control.db.one<{ n: number }>(sql`
        select coalesce(sum((body::jsonb ->> 'count')::integer), 0)::integer as n from event where type = 'key.refused'`)
    ).n;
  };
  const before = await count();
  const refused = await fetch(`${root.url()}/topics`, { headers: { authorization: 'Bearer mrk_not_a_known_key' } });
  expect(refused.status).toBe(401);
  expect(await count()).toBe(before + 1);
  for (const answer of [refused, await fetch(`${root.url()}/health`), await fetch(`${root.url()}/topics`)])
    expect(Object.fromEntries(answer.headers)).toMatchObject(guards);
});

it.each(['/bus/topics/x', '/t/shop/bus/topics/x'])('%s offers Basic and Bearer to an unknown caller', async (path) => {
  for (const key of [undefined, 'mrk_not_a_known_key']) {
    const { answer } = await send(below, path, key === undefined ? {} : { key });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toBe('Basic realm="millrace", Bearer realm="millrace"');
  }
});

it('a key of another tenant is rejected, and an unknown tenant is not found', async () => {
  const key = await gateway.key('client', 'shop');
  expect((await send(below, '/bus/topics/orders', { key })).answer.status).toBe(403);
  const rootKey = await gateway.key('root', null);
  expect((await send(below, '/t/nowhere/bus/topics/orders', { key: rootKey })).answer.status).toBe(404);
});

it('a revoked key is rejected at once, although its caller was remembered', async () => {
  const key = await gateway.key('client', 'shop');
  expect((await send(below, '/t/shop/bus/topics/revoked', { key })).answer.status).toBe(200);
  await fleet.control.db.exec(sql`update key set revoked_at = now() where tenant_id is not null`);
  gateway.context.callers.forget();
  expect((await send(below, '/t/shop/bus/topics/revoked', { key })).answer.status).toBe(401);
});

it('a body beyond 4 MiB is rejected, with and without a length', async () => {
  const key = await gateway.key('client', 'shop');
  const body = 'x'.repeat(4 * 1024 * 1024 + 1);
  expect((await send(below, '/t/shop/bus/topics/orders', { key, body })).answer.status).toBe(413);
});

it('a compressed body is refused, and nothing is stored', async () => {
  const key = await gateway.key('client', 'shop');
  const before = await countIn('shop');
  for (const path of ['/t/shop/bus/topics/orders', '/t/shop/bus/topics/orders?slow']) {
    const { answer, json } = await send(below, path, { key, headers: { 'content-encoding': 'gzip' } });
    expect([answer.status, json.detail]).toEqual([415, 'send the body without Content-Encoding: gzip']);
  }
  const plain = { key, headers: { 'content-encoding': 'identity' } };
  expect((await send(below, '/t/shop/bus/topics/not_packed', plain)).answer.status).toBe(200);
  expect(await countIn('shop')).toBe(before + 1);
});

it('the health of the bus is told without a key, by GET and HEAD', async () => {
  for (const path of ['/health', '/health/ping', '/health/ping.json'])
    for (const method of ['GET', 'HEAD']) expect((await fetch(root.url() + path, { method })).status).toBe(200);
});

it('requests in one packet are answered in their order, and those of HTTP/1.0 end the connection', async () => {
  const key = await gateway.key('client', 'shop');
  const body = JSON.stringify(event);
  const request = (version: string) =>
    `POST /topics/packets HTTP/${version}\r\nHost: x\r\nAuthorization: Basic ${btoa(`${key}:x`)}\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`;
  const raw = openRaw(root.url());
  raw.send(request('1.1').repeat(3));
  await raw.waitForAnswers(3);
  const ids = [...raw.text().matchAll(/\r\n\r\n\{"id":"(\d+)"\}/g)].map(([, id]) => Number(id));
  expect(ids).toEqual([ids[0], Number(ids[0]) + 1, Number(ids[0]) + 2]);
  raw.socket.destroy();
  const old = openRaw(root.url());
  old.send(request('1.0'));
  await until('the connection has ended', () => old.isClosed() || undefined);
  expect(old.text()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\{"id":"\d+"\}$/);
});

it('a repeated Idempotency-Key is marked in the answer', async () => {
  const key = await gateway.key('client', 'shop');
  const once = () => send(below, '/t/shop/bus/topics/keyed', { key, headers: { 'idempotency-key': 'k' } });
  const [first, second] = [await once(), await once()];
  expect(second.json).toEqual(first.json);
  expect([first, second].map(({ answer }) => answer.headers.get('idempotent-replayed'))).toEqual([null, 'true']);
});

it('beyond the limit of waiting events, a publisher is told to try again', async () => {
  const desk = new PublishDesk({
    loader: { use: () => new Promise<never>(() => {}) } as never,
    turns: new BatchTurns(),
    limits: { waiting: 1, waitMs: 200 },
  });
  const crowded = await listen(gateway, 'below', desk);
  const key = await gateway.key('client', 'shop');
  const answers = await Promise.all([1, 2].map(() => send(crowded, '/t/shop/bus/topics/crowded', { key })));
  expect(answers.map(({ answer }) => answer.status).toSorted((a, b) => a - b)).toEqual([429, 503]);
  expect(answers.map(({ answer }) => answer.headers.get('retry-after'))).toEqual(['1', '1']);
});

it('a tenant whose engine has no bus is answered with 503 no_bus', async () => {
  const { bus: _, ...former } = engine;
  const old = makeTestGateway(fleet, fleet.newLoader({ engines: [former] }));
  const listener = await listen(old, 'below');
  const { answer, json } = await send(listener, '/t/shop/bus/topics/x', { key: await old.key('client', 'shop') });
  expect([answer.status, json.code]).toEqual([503, 'no_bus']);
});
