/**
 * The worst that publishers, subscribers and operators can send to the event bus. While it is handled, no other client waits for
 * more than 200 ms. A new kind is a line in the table.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { newId } from '../../src/kernel/id.ts';
import { measureBlocking } from '../harness/blocking.ts';
import { basic, type BusClient, makeBusClient } from '../harness/bus-client.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const longestWaitMs = 200;

let product: Product;
let publisher: BusClient;
/** Pulls, through a filter that looks at many fields and admits everything. */
let consumer: BusClient;

const repeat = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);
const large = { type: 'update', url: 'https://shop.example/orders/1', data: { text: 'x'.repeat(15_000) } };
const filter = Object.fromEntries(repeat(250, 0).map((_, i) => [`data.f${i}`, { $exists: false }]));
/** 75 MB. */
const events = 5_000;

beforeAll(async () => {
  product = await startProduct({ args: ['--no-worker'] });
  publisher = await makeBusClient(product, 'publisher');
  consumer = await makeBusClient(product, 'consumer');
  const wish = { topics: ['large'], kind: 'pull' as const, filter, timeout: 0, max: 10_000, max_bytes: 16_777_216 };
  await consumer.call('POST /bus/subscriber', { body: wish });
  for (let sent = 0; sent < events; sent += 250) await publisher.publish('large', repeat(250, large));
  await until('all events are counted', async () => {
    const { events: counts } = await consumer.call('GET /bus/subscriber');
    return counts.queued === events || undefined;
  });
}, 120_000);
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

async function send(method: string, path: string, key: string, body?: string): Promise<number> {
  const headers = { authorization: basic(key), 'content-type': 'application/json' };
  const answer = await fetch(product.url + path, { method, headers, ...(body === undefined ? {} : { body }) });
  await answer.arrayBuffer();
  return answer.status;
}

interface WorstInput {
  readonly what: string;
  readonly work: () => Promise<void>;
}

const inputs: WorstInput[] = [
  {
    what: 'a subscriber with a long filter begins again with 75 MB of events',
    work: async () => expect(await send('POST', '/bus/subscriber/resume', consumer.key, '{"from":"1"}')).toBe(200),
  },
  {
    what: 'four arrays of 4 MB are published at once',
    work: async () => {
      const body = JSON.stringify(repeat(260, large));
      await Promise.all(repeat(4, 0).map(() => send('POST', '/bus/topics/more', publisher.key, body)));
    },
  },
  {
    what: 'twenty arrays of very many small values are published at once',
    work: async () => {
      const body = `[${'[],'.repeat(190_000)}[]]`;
      await Promise.all(repeat(20, 0).map(() => send('POST', '/bus/topics/more', publisher.key, body)));
    },
  },
  {
    what: 'an import of subscribers with long filters, each wrong',
    work: async () => {
      const one = { name: 'a', identity: newId(), callback: 'x', topics: ['a'], filter: { 'data.a': repeat(300, {}) } };
      const body = JSON.stringify({ version: 1, topics: [], subscribers: repeat(1_000, one) });
      expect(await send('POST', '/bus/import', product.rootKey, body)).toBe(400);
    },
  },
  {
    what: 'an import of as many topics as fit',
    work: async () => {
      const topics = repeat(25_000, 0).map((_, i) => ({ name: `t_${lettersOf(i)}`, owner: null, owner_name: '' }));
      const body = JSON.stringify({ version: 1, topics, subscribers: [] });
      expect(await send('POST', '/bus/import', product.rootKey, body)).toBe(200);
    },
  },
  {
    what: 'twenty lists of very many topics',
    work: async () => {
      const lists = await Promise.all(repeat(20, 0).map(() => send('GET', '/bus/topics', publisher.key)));
      expect(lists).toEqual(repeat(20, 200));
    },
  },
  {
    what: 'ten exports of very many topics',
    work: async () => {
      const exports = await Promise.all(repeat(10, 0).map(() => send('GET', '/bus/export', product.rootKey)));
      expect(exports).toEqual(repeat(10, 200));
    },
  },
];

/** A topic has no digits. */
function lettersOf(n: number): string {
  return n.toString().replaceAll(/\d/g, (digit) => 'abcdefghij'[Number(digit)] ?? '');
}

it.each(inputs)('$what', { timeout: 120_000 }, async ({ work }) => {
  const watched = { url: product.url, pid: product.child.pid ?? 0 };
  expect(await measureBlocking(watched, work, longestWaitMs)).toBeLessThanOrEqual(longestWaitMs);
});

it('two hundred consumers of one subscriber ask for its largest batch at once, and none gets an error', async () => {
  const statuses = await Promise.all(
    repeat(200, 0).map(() => send('GET', '/bus/subscriber/batch?wait=2', consumer.key)),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(1);
  expect(statuses.filter((status) => status === 204)).toHaveLength(199);
});
