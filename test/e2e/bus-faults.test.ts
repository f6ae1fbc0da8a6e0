/**
 * Faults of receivers and operators against a running product. A title names its fault as the design's table does (docs/internals.md,
 * "Faults of the bus"). Couriers, APIs and PostgreSQL die in `test/chaos/bus-points.test.ts`.
 */
import { createServer as createHttp } from 'node:http';
import { type AddressInfo, createServer as createNet, type Server, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { basic, type BusClient, makeBusClient } from '../harness/bus-client.ts';
import { type BusReceiver, makeBusReceiver } from '../harness/bus-receiver.ts';
import { refusal } from '../harness/expected.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

let product: Product;
let receiver: BusReceiver;
let publisher: BusClient;
/** Answers of the receiver by path; a path that is not listed accepts. */
const answers = new Map<string, BusReceiver['reply']>();
const closing: (() => void)[] = [];
beforeAll(async () => {
  receiver = await makeBusReceiver();
  receiver.reply = (got) => answers.get(got.path)?.(got) ?? 204;
  product = await startProduct({ env: { MILLRACE_BUS_ALLOW_HTTP: 'true', MILLRACE_BUS_ALLOW_CIDRS: '127.0.0.0/8' } });
  publisher = await makeBusClient(product, 'shop');
});
afterEach(() => {
  for (const close of closing.splice(0)) close();
});
afterAll(async () => {
  await product?.stop();
  if (product !== undefined) await removeHome(product.home);
  await receiver?.close();
});

const event = (n: number, more: object = {}) => ({ type: 'update', url: `https://shop.example/orders/${n}`, ...more });
const events = (count: number) => Array.from({ length: count }, (_, i) => event(i));

interface Wish {
  readonly topics: readonly string[];
  readonly callback?: string;
  readonly [field: string]: unknown;
}

/** A client with a subscriber of its own, and what the receiver got on the path of its name. */
async function subscribe(name: string, wish: Wish, tenant = 'default') {
  const client = await makeBusClient(product, name, { tenant });
  const { callback = `${receiver.url}/${name}`, topics, ...more } = wish;
  await client.call('POST /bus/subscription', { body: { topics: [...topics], callback, timeout: 0 } });
  if (Object.keys(more).length > 0) await client.call('PATCH /bus/subscriber', { body: more });
  const { id } = await client.call('GET /bus/subscriber');
  return { client, id, batches: () => receiver.received.filter(({ path }) => path === `/${name}`) };
}

const queuedOf = async (client: BusClient) => (await client.call('GET /bus/subscriber')).events.queued;
const failuresOf = (client: BusClient) =>
  until('a failure is listed', async () => {
    const { items } = await client.call('GET /bus/subscriber/deliveries');
    const failures = items.filter(({ status }) => status === null || status >= 300);
    return failures.length > 0 ? failures : undefined;
  });

/** Listens on a free port of this machine until the test ends. Returns the port. */
async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => {})));
  closing.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

describe('receivers', () => {
  it('receiver hangs: it is cut off after its request timeout, and others receive meanwhile', async () => {
    answers.set('/hanging', () => 'hang');
    const { client, batches } = await subscribe('hanging', { topics: ['hangs'], request_timeout: 300 });
    await subscribe('beside', { topics: ['hangs'] });
    const seqs = await publisher.publish('hangs', event(1));
    expect(await receiver.acceptedEvents(1, '/beside')).toEqual(seqs);
    expect((await failuresOf(client)).at(-1)).toMatchObject({ status: null, code: 'timeout', attempt: 1 });
    answers.delete('/hanging');
    expect(await receiver.acceptedEvents(1, '/hanging')).toEqual(seqs);
    expect(new Set(batches().map(({ id, body }) => id + body)).size).toBe(1);
  });

  it('receiver drips: it is cut off after its request timeout', async () => {
    const port = await listen(
      createNet((socket) => {
        socket.write('HTTP/1.1 200 OK\r\n');
        const timer = setInterval(() => socket.write('x-drip: 1\r\n'), 50);
        socket.on('close', () => clearInterval(timer));
      }),
    );
    const callback = `http://127.0.0.1:${port}/drips`;
    const { client } = await subscribe('drips', { topics: ['drips'], callback, request_timeout: 300 });
    await publisher.publish('drips', event(1));
    expect((await failuresOf(client)).at(-1)).toMatchObject({ status: null, code: 'timeout', attempt: 1 });
    expect(await queuedOf(client)).toBe(1);
  });

  it('receiver resets: the same batch is sent again', async () => {
    let resets = 0;
    answers.set('/resets', () => (resets++ < 2 ? 'reset' : 204));
    const { client, batches } = await subscribe('resets', { topics: ['resets'] });
    const seqs = await publisher.publish('resets', events(3));
    expect(await receiver.acceptedEvents(3, '/resets')).toEqual(seqs);
    expect(new Set(batches().map(({ id, body }) => id + body)).size).toBe(1);
    expect((await failuresOf(client)).at(-1)).toMatchObject({ status: null, code: 'reset' });
  });

  it('receiver redirects: that is a failure, and the other address is not called', async () => {
    const location = `${receiver.url}/elsewhere`;
    answers.set('/redirects', () => ({ status: 307, headers: { location } }));
    const { client } = await subscribe('redirects', { topics: ['redirects'] });
    await publisher.publish('redirects', event(1));
    expect((await failuresOf(client)).at(-1)).toMatchObject({ status: 307, attempt: 1 });
    expect(receiver.received.some(({ path }) => path === '/elsewhere')).toBe(false);
    expect(await queuedOf(client)).toBe(1);
  });

  it.each([
    ['200', 200, 0],
    ['500', 500, 1],
  ])('receiver sends 1 GB with status %s: the answer is capped', async (name, status, queued) => {
    const chunk = Buffer.alloc(1 << 20, 'x');
    let sentMiB = 0;
    let closed = 0;
    const port = await listen(
      createHttp((incoming, to) => {
        incoming.resume();
        to.writeHead(status);
        const more = (): void => {
          if (to.destroyed || sentMiB >= 1_024) return;
          sentMiB += 1;
          if (to.write(chunk)) setImmediate(more);
          else to.once('drain', more);
        };
        to.on('close', () => (closed += 1));
        more();
      }),
    );
    const topic = `gigabyte_${status === 200 ? 'ok' : 'bad'}`;
    const { client } = await subscribe(`gigabyte-${name}`, { topics: [topic], callback: `http://127.0.0.1:${port}/` });
    await publisher.publish(topic, event(1));
    await until('the courier ended the connection', () => closed > 0);
    expect(sentMiB).toBeLessThan(64 * closed);
    await until('the attempt is settled', async () => {
      const { items } = await client.call('GET /bus/subscriber/deliveries');
      return items.some((item) => item.status === status) && (await queuedOf(client)) === queued;
    });
  });

  it.each([400, 413, 422])(
    'receiver answers %i to a bad event: the others arrive, and it is a dead letter',
    async (status) => {
      const topic = `refuses_${'abc'[status % 3] ?? ''}`;
      const name = `refuses-${status}`;
      answers.set(`/${name}`, ({ body }) => (body.includes('"bad":true') ? status : 204));
      const { client } = await subscribe(name, { topics: [topic] });
      const seqs = await publisher.publish(topic, [event(1), event(2, { data: { bad: true } }), event(3), event(4)]);
      expect(await receiver.acceptedEvents(3, `/${name}`)).toEqual([seqs[0], seqs[2], seqs[3]]);
      await until('nothing is queued', async () => (await queuedOf(client)) === 0);
      const { items } = await client.call('GET /bus/dead_letters');
      expect(items).toEqual([expect.objectContaining({ events: 1, status, code: 'refused' })]);
    },
  );

  it('receiver answers 429 with Retry-After: nothing is sent before that time', async () => {
    const seenMs: number[] = [];
    answers.set('/busy', () => {
      seenMs.push(performance.now());
      return seenMs.length === 1 ? { status: 429, headers: { 'retry-after': '3' } } : 204;
    });
    await subscribe('busy', { topics: ['busy'] });
    const seqs = await publisher.publish('busy', event(1));
    expect(await receiver.acceptedEvents(1, '/busy')).toEqual(seqs);
    const [first = 0, second = 0] = seenMs;
    // by itself, the second attempt would come within half a second
    expect(second - first).toBeGreaterThan(2_900);
  });
});

describe('topics, subscribers and keys', () => {
  it('topic deleted under backlog: what was accepted before arrives, and nothing of a new topic of that name', async () => {
    let isUp = false;
    answers.set('/kept', () => (isUp ? 204 : 503));
    const { client, batches } = await subscribe('kept', { topics: ['deleted', 'other'] });
    const before = await publisher.publish('deleted', events(5));
    const beside = await publisher.publish('other', events(2));
    await until('the receiver has failed', () => batches().length > 0);
    await publisher.call('DELETE /bus/topics/{name}', { params: { name: 'deleted' } });
    const after = await publisher.publish('deleted', events(2));
    const last = await publisher.publish('other', event(9));
    isUp = true;
    expect(await receiver.acceptedEvents(8, '/kept')).toEqual([...before, ...beside, ...last]);
    await until('nothing is queued', async () => (await queuedOf(client)) === 0);
    expect(batches().flatMap(({ seqs }) => seqs)).not.toContain(after[0]);
  });

  it('subscriber deleted under backlog: its errand goes, and others receive', async () => {
    answers.set('/removed', () => 503);
    const { client, id, batches } = await subscribe('removed', { topics: ['removal'] });
    await subscribe('remaining', { topics: ['removal'] });
    const before = await publisher.publish('removal', events(50));
    await until('its receiver has failed', () => batches().length > 0);
    await client.call('DELETE /bus/subscriber');
    const after = await publisher.publish('removal', events(2));
    expect(await receiver.acceptedEvents(52, '/remaining')).toEqual([...before, ...after]);
    const { items } = await product.call('GET /api/errands');
    expect(items.map(({ key }) => key).join()).not.toContain(id);
    await expect(client.call('GET /bus/subscriber')).rejects.toEqual(refusal(404));
    expect(batches().flatMap(({ seqs }) => seqs)).not.toContain(after[0]);
  });

  it('key revoked: deliveries continue, and an operator gives the subscriber to another key', async () => {
    const { client, id } = await subscribe('revoked', { topics: ['revocation'] });
    const own = (await product.call('GET /api/keys')).items.find(({ name }) => name === 'revoked');
    await product.call('DELETE /api/keys/{id}', { params: { id: own?.id ?? '' } });
    const answer = await fetch(`${product.url}/bus/subscriber`, { headers: { authorization: basic(client.key) } });
    expect(answer.status).toBe(401);
    const seqs = await publisher.publish('revocation', events(3));
    expect(await receiver.acceptedEvents(3, '/revoked')).toEqual(seqs);
    const heir = await makeBusClient(product, 'heir');
    const heirKey = (await product.call('GET /api/keys')).items.find(({ name }) => name === 'heir');
    await product.call('PUT /bus/subscribers/{id}/owner', {
      params: { id },
      body: { identity: heirKey?.identity ?? '' },
    });
    expect((await heir.call('GET /bus/subscriber')).id).toBe(id);
  });
});

describe('tenants', () => {
  it('tenant stopped: events are accepted and kept, and arrive once it runs; dropped: nothing more is sent', async () => {
    await product.call('POST /api/tenants', { body: { name: 'paused' } });
    const there = await makeBusClient(product, 'there', { tenant: 'paused' });
    const { batches } = await subscribe('stopped', { topics: ['kept'] }, 'paused');
    const first = await there.publish('kept', event(0));
    await receiver.acceptedEvents(1, '/stopped');
    await product.call('POST /api/tenants/{name}/stop', { params: { name: 'paused' }, body: {} });
    const kept = await there.publish('kept', events(20));
    // the neighbour of a stopped tenant receives, so the courier has had its turn
    await subscribe('neighbour', { topics: ['neighbour'] });
    await publisher.publish('neighbour', event(1));
    await receiver.accepted(1, '/neighbour');
    await product.call('POST /api/tenants/{name}/start', { params: { name: 'paused' } });
    expect(await receiver.acceptedEvents(21, '/stopped')).toEqual([...first, ...kept]);

    answers.set('/stopped', () => 503);
    const sent = batches().length;
    await there.publish('kept', events(5));
    await until('the receiver fails', () => batches().length > sent);
    await product.call('DELETE /api/tenants/{name}', { params: { name: 'paused' } });
    const atDrop = batches().length;
    const seqs = await publisher.publish('neighbour', events(2));
    expect((await receiver.acceptedEvents(3, '/neighbour')).slice(1)).toEqual(seqs);
    expect(batches().length - atDrop).toBeLessThanOrEqual(1);
    await expect(there.publish('kept', event(1))).rejects.toThrow(/answered with 40[134]/);
  });
});
