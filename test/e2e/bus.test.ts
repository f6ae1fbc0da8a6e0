/**
 * The event bus of a running product, from a publisher's request to the receiver: batches, failures, pauses, dead letters, signatures,
 * filters, pull, streams, Routemaster's own calls on the port of the bus, two tenants, and metrics.
 */
import { createHmac } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { basic, type BusClient, makeBusClient } from '../harness/bus-client.ts';
import { type BusReceiver, makeBusReceiver } from '../harness/bus-receiver.ts';
import { makeAuthority, type TestAuthority } from '../harness/certificates.ts';
import { refusal, textWith } from '../harness/expected.ts';
import { lastingPort } from '../harness/lasting-port.ts';
import { makeHomeFolder, type Product, removeHome, startProduct } from '../harness/product.ts';
import { readText } from '../harness/streams.ts';
import { until } from '../harness/until.ts';

const hourMs = 3_600_000;
let product: Product;
let authority: TestAuthority;
let receiver: BusReceiver;
let secure: BusReceiver;
let selfSigned: BusReceiver;
let publisher: BusClient;
let busUrl: string;

beforeAll(async () => {
  authority = await makeAuthority();
  const home = await makeHomeFolder();
  const listener = await authority.sign(['IP:127.0.0.1']);
  const [cert, key] = [join(home, 'bus-cert.pem'), join(home, 'bus-key.pem')];
  await Promise.all([writeFile(cert, listener.cert), writeFile(key, listener.key)]);
  receiver = await makeBusReceiver();
  secure = await makeBusReceiver(await authority.sign(['IP:127.0.0.1']));
  selfSigned = await makeBusReceiver(await authority.selfSigned(['IP:127.0.0.1']));
  const port = await lastingPort();
  busUrl = `https://127.0.0.1:${port}`;
  product = await startProduct({
    home,
    env: {
      MILLRACE_BUS_PORT: String(port),
      MILLRACE_BUS_TLS_CERT: cert,
      MILLRACE_BUS_TLS_KEY: key,
      MILLRACE_BUS_ALLOW_HTTP: 'true',
      MILLRACE_BUS_ALLOW_CIDRS: '127.0.0.0/8',
      MILLRACE_BUS_CA: authority.file,
    },
  });
  publisher = await makeBusClient(product, 'shop');
});
afterAll(async () => {
  await product?.stop();
  if (product !== undefined) await removeHome(product.home);
  await Promise.all([receiver, secure, selfSigned].map((each) => each?.close()));
  await authority?.close();
});

const event = (n: number, more: object = {}) => ({ type: 'update', url: `https://shop.example/orders/${n}`, ...more });
const events = (count: number, more: object = {}) => Array.from({ length: count }, (_, i) => event(i, more));

interface Wish {
  readonly topic: string;
  readonly max?: number;
  readonly timeout?: number;
  readonly [field: string]: unknown;
}

/** A client with a subscriber of its own. Its path at the receiver is its name. */
async function subscribe(name: string, { topic, ...wish }: Wish, at: BusReceiver = receiver): Promise<BusClient> {
  const client = await makeBusClient(product, name);
  const callback = `${at.url}/${name}`;
  await client.call('POST /bus/subscription', { body: { topics: [topic], callback, timeout: 0, ...wish } });
  return client;
}

/** Answers of the receiver by path; a path that is not listed accepts. */
const answers = new Map<string, BusReceiver['reply']>();
beforeAll(() => {
  receiver.reply = (got) => answers.get(got.path)?.(got) ?? 204;
});

describe('batches', () => {
  it('a full batch is sent at once, with the fields that the publisher sent, as Routemaster would', async () => {
    await subscribe('full', { topic: 'full', max: 3, timeout: hourMs, uuid: 's3cret' });
    const singles: number[] = [];
    for (let i = 0; i < 3; i++) singles.push(...(await publisher.publish('full', event(i, { data: { i } }))));
    const bulk = await publisher.publish('full', events(6));
    const batches = await receiver.accepted(3, '/full');
    expect(batches.map(({ seqs }) => seqs)).toEqual([singles, bulk.slice(0, 3), bulk.slice(3)]);
    expect(batches[0]?.headers).toMatchObject({ 'content-type': 'application/json', authorization: basic('s3cret') });
    const [element] = JSON.parse(batches[0]?.body ?? '') as Record<string, unknown>[];
    expect(Object.keys(element ?? {})).toEqual(['topic', 'type', 'url', 't', 'data', 'id']);
    expect(element).toMatchObject({ topic: 'full', ...event(0), data: { i: 0 }, id: String(singles[0]) });
  });

  it('a batch that is not full is sent after its window', async () => {
    await subscribe('window', { topic: 'window', max: 100, timeout: 300 });
    const seqs = await publisher.publish('window', events(2));
    expect((await receiver.accepted(1, '/window')).map((batch) => batch.seqs)).toEqual([seqs]);
  });

  it('with `ordering: key`, all strands deliver, and events of a URL stay in order', async () => {
    await subscribe('strands', { topic: 'strands', ordering: 'key', strands: 8, max: 2 });
    const urls = Array.from({ length: 60 }, (_, i) => event(i % 6, { data: { i } }));
    const seqs = await publisher.publish('strands', urls);
    expect((await receiver.acceptedEvents(60, '/strands')).toSorted((a, b) => a - b)).toEqual(seqs);
    const arrived = (await receiver.accepted(1, '/strands')).flatMap((batch) => batch.seqs);
    for (let url = 0; url < 6; url++) {
      const own = arrived.filter((seq) => (seq - (seqs[0] ?? 0)) % 6 === url);
      expect(own).toEqual(own.toSorted((a, b) => a - b));
    }
  });
});

describe('receivers', () => {
  it('an https receiver needs a certificate that the courier trusts', async () => {
    await subscribe('trusted', { topic: 'tls' }, secure);
    const distrusted = await subscribe('distrusted', { topic: 'tls' }, selfSigned);
    const seqs = await publisher.publish('tls', event(1));
    expect(await secure.acceptedEvents(1)).toEqual(seqs);
    const failures = await until('the failure is listed', async () => {
      const { items } = await distrusted.call('GET /bus/subscriber/deliveries');
      return items.length > 0 ? items : undefined;
    });
    // newest first: a retry may be listed already
    expect(failures.at(-1)).toMatchObject({ status: null, code: 'tls', attempt: 1, events: 1 });
    expect(selfSigned.received).toEqual([]);
  });

  it('a receiver that fails gets the same batch again, and the next ones after it', async () => {
    let failures = 0;
    answers.set('/failing', () => (failures++ < 2 ? 500 : 204));
    const client = await subscribe('failing', { topic: 'failing', max: 2 });
    const seqs = await publisher.publish('failing', events(4));
    expect(await receiver.acceptedEvents(4, '/failing')).toEqual(seqs);
    const got = receiver.received.filter(({ path }) => path === '/failing');
    expect(got.map(({ status }) => status)).toEqual([500, 500, 204, 204]);
    expect(new Set(got.slice(0, 3).map(({ id, body }) => id + body)).size).toBe(1);
    expect(got.map(({ headers }) => headers['millrace-attempt'])).toEqual(['1', '2', '3', '1']);
    const listed = await until('all attempts are listed', async () => {
      const { items } = await client.call('GET /bus/subscriber/deliveries');
      return items.length === 4 ? items : undefined;
    });
    expect(listed.map(({ status }) => status).toReversed()).toEqual([500, 500, 204, 204]);
  });

  it('explain names the answer of a failing receiver, and that a delivered batch is delivered', async () => {
    let isUp = false;
    answers.set('/explained', () => (isUp ? 204 : 503));
    const client = await subscribe('explained', { topic: 'explained' });
    const [seq] = await publisher.publish('explained', event(1));
    const { subscriber: id } = await client.call('GET /bus/subscriber');
    const explain = (of: string) => client.call('GET /api/explain/delivery/{id}', { params: { id: of } });
    const failing = await until('a failure is explained', async () => {
      const explained = await explain(id);
      return explained.reasons.some(({ code }) => code === 'receiver_failed') ? explained : undefined;
    });
    expect(failing).toMatchObject({ state: 'retrying', summary: textWith('503') });
    isUp = true;
    const [batch] = await receiver.accepted(1, '/explained');
    expect(batch?.seqs).toEqual([seq]);
    await until('the batch is explained as delivered', async () =>
      (await explain(batch?.id ?? '')).state === 'delivered' ? true : undefined,
    );
    await until('nothing is queued', async () => ((await explain(id)).state === 'idle' ? true : undefined));
    await expect(publisher.call('GET /api/explain/delivery/{id}', { params: { id } })).rejects.toEqual(refusal(404));
  });

  it('a receiver that answers 410 is disabled, and receives what waits when it subscribes again', async () => {
    answers.set('/gone', () => 410);
    const client = await subscribe('gone', { topic: 'gone' });
    const first = await publisher.publish('gone', event(1));
    const gone = await until('it is disabled', async () => {
      const detail = await client.call('GET /bus/subscriber');
      return detail.state === 'disabled' ? detail : undefined;
    });
    expect(gone.reason).toContain('410');
    const second = await publisher.publish('gone', event(2));
    answers.delete('/gone');
    await client.call('POST /bus/subscription', { body: { topics: ['gone'], callback: `${receiver.url}/gone` } });
    expect(await receiver.acceptedEvents(2, '/gone')).toEqual([...first, ...second]);
  });
});

describe('subscribers', () => {
  it('a paused subscriber receives nothing, and continues from the event that resume names', async () => {
    const client = await subscribe('paused', { topic: 'paused', max: 1 });
    const before = await publisher.publish('paused', event(0));
    await receiver.accepted(1, '/paused');
    await client.call('POST /bus/subscriber/pause', { body: { reason: 'maintenance' } });
    const kept = await publisher.publish('paused', events(3));
    const { subscriber: id } = await client.call('GET /bus/subscriber');
    const explained = await client.call('GET /api/explain/delivery/{id}', { params: { id } });
    expect(explained).toMatchObject({ state: 'stopped', summary: textWith('maintenance') });
    await client.call('POST /bus/subscriber/resume', { body: { from: String(kept[1]) } });
    await receiver.accepted(3, '/paused');
    await client.call('POST /bus/subscriber/pause');
    await client.call('POST /bus/subscriber/resume', { body: { from: String(before[0]) } });
    const all = (await receiver.accepted(7, '/paused')).flatMap(({ seqs }) => seqs);
    expect(all).toEqual([...before, ...kept.slice(1), ...before, ...kept]);
  });

  it('a batch that exceeds its attempts becomes a dead letter, and the next one follows', async () => {
    answers.set('/dead', ({ body }) => (body.includes('orders/0"') ? 500 : 204));
    const client = await subscribe('dead', { topic: 'dead', max: 1, max_attempts: 2 });
    const [first, second] = await publisher.publish('dead', events(2));
    expect(await receiver.acceptedEvents(1, '/dead')).toEqual([second]);
    const { items } = await client.call('GET /bus/dead_letters');
    expect(items).toEqual([expect.objectContaining({ events: 1, status: 500, code: 'max_attempts', attempts: 2 })]);
    const letter = await client.call('GET /bus/dead_letters/{id}', { params: { id: items[0]?.id ?? '' } });
    expect(letter.body?.map(({ id }) => Number(id))).toEqual([first]);
    const foreign = publisher.call('GET /bus/dead_letters/{id}', { params: { id: letter.id } });
    await expect(foreign).rejects.toEqual(refusal(404));
    const all = await product.call('GET /bus/dead_letters');
    expect(all.items.map(({ id }) => id)).toContain(letter.id);
  });

  it('a receiver can verify the signatures of both secrets while one replaces the other', async () => {
    const client = await subscribe('signed', { topic: 'signed' });
    const first = await client.call('POST /bus/subscriber/secret');
    const second = await client.call('POST /bus/subscriber/secret');
    await publisher.publish('signed', event(1));
    const [batch] = await receiver.accepted(1, '/signed');
    const { 'webhook-timestamp': at, 'webhook-signature': signatures } = batch?.headers ?? {};
    const expected = [first, second].map(({ secret }) => {
      const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
      return `v1,${createHmac('sha256', key)
        .update(`${batch?.id}.${String(at)}.${batch?.body}`)
        .digest('base64')}`;
    });
    expect(String(signatures).split(' ').toSorted()).toEqual(expected.toSorted());
  });

  it('a filter lets only matching events through', async () => {
    const filter = { type: ['create', 'update'], $or: [{ 'data.amount': { $gte: 100 } }, { 'data.vip': true }] };
    await subscribe('filtered', { topic: 'filtered', filter });
    const seqs = await publisher.publish('filtered', [
      event(0, { data: { amount: 99 } }),
      event(1, { data: { amount: 100 } }),
      event(2, { type: 'delete', data: { amount: 500 } }),
      event(3, { data: { vip: true } }),
      event(4),
    ]);
    expect(await receiver.acceptedEvents(2, '/filtered')).toEqual([seqs[1], seqs[3]]);
  });

  it('a pull consumer gets a batch again until it acknowledges it', async () => {
    const client = await makeBusClient(product, 'puller');
    await client.call('POST /bus/subscription', { body: { topics: ['pulled'], kind: 'pull', max: 2, timeout: 0 } });
    const pull = () => client.call('GET /bus/subscriber/batch', { query: { wait: 30 } });
    const waiting = pull();
    const seqs = await publisher.publish('pulled', events(3));
    const first = await waiting;
    await client.call('POST /bus/subscriber/batch/{id}/nack', {
      params: { id: first.id },
      body: { lease: first.lease },
    });
    const again = await pull();
    expect([again.id, again.events]).toEqual([first.id, first.events]);
    const params = { id: first.id };
    const outdated = client.call('POST /bus/subscriber/batch/{id}/ack', { params, body: { lease: first.lease } });
    await expect(outdated).rejects.toEqual(refusal(409));
    await client.call('POST /bus/subscriber/batch/{id}/ack', { params, body: { lease: again.lease } });
    const last = await pull();
    const ids = [...again.events, ...last.events].map(({ id }) => Number(id));
    expect(ids.slice(0, 3)).toEqual(seqs.slice(0, ids.length));
  });

  it('a stream of /bus/events carries the events of its topics from a number on', async () => {
    const [first = 0] = await publisher.publish('streamed', event(1));
    const response = await fetch(`${product.url}/bus/events?topics=streamed&after=${first - 1}`, {
      headers: { accept: 'text/event-stream', authorization: basic(publisher.key) },
    });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const stream = readText(response);
    await stream.until((text) => text.includes(`id: ${first}\n`));
    await publisher.publish('not_streamed', event(1));
    const [second] = await publisher.publish('streamed', event(2));
    const text = await stream.until((seen) => seen.includes(`id: ${second}\n`) && seen.endsWith('\n\n'));
    expect(text).not.toContain('not_streamed');
    expect(JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? '')).toMatchObject({ ...event(2), id: String(second) });
    await stream.leave();
  });
});

describe('the port of the bus', () => {
  /** A call as Routemaster's clients make it. */
  async function ask(method: string, path: string, user: string, body?: unknown): Promise<[number, unknown]> {
    const ca = await readFile(authority.file);
    return new Promise((resolve, reject) => {
      const headers = { authorization: basic(user), 'content-type': 'application/json' };
      const sent = request(`${busUrl}${path}`, { method, headers, ca }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve([answer.statusCode ?? 0, text === '' ? undefined : (JSON.parse(text) as unknown)]);
        });
      });
      sent.on('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  it("Routemaster's own calls work over https, from a token to a delivery and back", async () => {
    const [made, token] = await ask('POST', '/api_tokens', product.rootKey, { name: 'routemaster' });
    expect([made, token]).toEqual([201, { name: 'routemaster', token: expect.any(String) as unknown }]);
    const { token: key } = token as { token: string };
    const wish = { topics: ['widgets'], callback: `${receiver.url}/widgets`, uuid: 'u', timeout: 0, max: 10 };
    expect(await ask('POST', '/subscription', key, wish)).toEqual([204, undefined]);
    const [status, posted] = await ask('POST', '/topics/widgets', key, event(7));
    expect(status).toBe(200);
    expect(await receiver.acceptedEvents(1, '/widgets')).toEqual([Number((posted as { id: string }).id)]);
    const [, subscriptions] = await ask('GET', '/subscriptions', key);
    expect(subscriptions).toContainEqual(
      expect.objectContaining({ callback: wish.callback, topics: ['widgets'], max_events: 10, timeout: 0, uuid: 'u' }),
    );
    const [, topics] = await ask('GET', '/topics', key);
    expect(topics).toContainEqual(expect.objectContaining({ name: 'widgets', publisher: textWith('routemaster') }));
    for (const path of ['/pulse', '/pulse/scaling']) expect(await ask('GET', path, key)).toEqual([204, undefined]);
    expect((await ask('POST', '/topics/widgets', publisher.key, event(1)))[0]).toBe(403);
    expect(await ask('DELETE', '/subscriber/topics/widgets', key)).toEqual([204, undefined]);
    expect(await ask('DELETE', `/api_tokens/${key}`, product.rootKey)).toEqual([204, undefined]);
    expect((await ask('GET', '/pulse', key))[0]).toBe(401);
    const [, left] = await ask('GET', '/subscriptions', publisher.key);
    expect(left).not.toContainEqual(expect.objectContaining({ callback: wish.callback }));
  });
});

describe('tenants', () => {
  it('tenants have their own topics, numbers and subscribers', async () => {
    await product.call('POST /api/tenants', { body: { name: 'other' } });
    const stranger = await makeBusClient(product, 'stranger', { tenant: 'other' });
    const here = await subscribe('here', { topic: 'shared' });
    await stranger.call('POST /bus/subscription', {
      body: { topics: ['shared'], callback: `${receiver.url}/there`, timeout: 0 },
    });
    const mine = await publisher.publish('shared', events(2, { data: { whose: 'mine' } }));
    const theirs = await stranger.publish('shared', events(2, { data: { whose: 'theirs' } }));
    expect(theirs).toEqual([1, 2]);
    expect(await receiver.acceptedEvents(2, '/there')).toEqual(theirs);
    expect(await receiver.acceptedEvents(2, '/here')).toEqual(mine);
    const bodies = (path: string) => receiver.received.filter((got) => got.path === path).map(({ body }) => body);
    expect(bodies('/there').join()).not.toContain('mine');
    expect(bodies('/here').join()).not.toContain('theirs');
    const listed = (await stranger.call('GET /bus/subscriptions')) as readonly { callback: string | null }[];
    expect(listed.map(({ callback }) => callback)).toEqual([`${receiver.url}/there`]);
    const crossing = fetch(`${product.url}/t/other/bus/subscriber`, { headers: { authorization: basic(here.key) } });
    expect((await crossing).status).toBe(403);
  });
});

it('/metrics counts what was published, delivered and given up', async () => {
  const text = await until('the couriers have reported', async () => {
    const answer = await fetch(`${product.url}/metrics`, { headers: { authorization: `Bearer ${product.rootKey}` } });
    const metrics = await answer.text();
    return /millrace_bus_dead_letters_total\{.*\} [1-9]/.test(metrics) &&
      /millrace_bus_delivered_events_total\{.*tenant="other".*\} 2$/m.test(metrics)
      ? metrics
      : undefined;
  });
  expect(text).toMatch(/millrace_bus_published_events_total\{.*tenant="other".*\} 2$/m);
  expect(text).toMatch(/millrace_bus_deliveries_total\{.*status="5xx".*\} [1-9]/);
  expect(text).toMatch(/millrace_bus_deliveries_total\{.*status="tls".*\} [1-9]/);
  expect(text).toMatch(/millrace_bus_latency_seconds_count\{.*\} [1-9]/);
  expect(text).toMatch(/^millrace_couriers 1$/m);
});
