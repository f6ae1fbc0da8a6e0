/**
 * The courier, and then `up` with it, are killed with kill -9 while events are published and delivered. Every acknowledged event
 * arrives, in order, and a batch id always has the same bytes.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sql, onClient } from '../../src/kernel/sql.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { type BusClient, busClientOf, makeBusClient } from '../harness/bus-client.ts';
import { type BusReceiver, makeBusReceiver } from '../harness/bus-receiver.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { controlAddress } from '../harness/second-tenant.ts';
import { until } from '../harness/until.ts';

const env = { MILLRACE_BUS_ALLOW_HTTP: 'true', MILLRACE_BUS_ALLOW_CIDRS: '127.0.0.0/8' };
/** Publishers at once, each with one request at a time. */
const publishers = 4;
/** Events that are acknowledged before the next kill. */
const eventsBetween = 300;

/** A lost courier is noticed after 10 to 15 s, twice in this test; a busy machine takes several times as long. */
const maxWaitMs = 90_000;

let product: Product;
let receiver: BusReceiver;
beforeAll(async () => {
  receiver = await makeBusReceiver();
  product = await startProduct({ env });
});
afterAll(async () => {
  await product?.stop();
  if (product !== undefined) await removeHome(product.home);
  await receiver?.close();
});

async function courierPid(other?: number): Promise<number> {
  const address = await controlAddress(product.home);
  return until('a courier is registered', () =>
    withClient(address, async (client) => {
      const rows = await onClient(client).rows<{ pid: number }>(
        sql`select pid from control.courier order by started_at`,
      );
      return rows.find(({ pid }) => pid !== other)?.pid;
    }),
  );
}

/** Publishes until it is stopped. Requests that fail are repeated as other events; only acknowledged ones count. */
function startLoad(client: BusClient) {
  const acknowledged: number[] = [];
  let isOver = false;
  const publish = async (publisher: number): Promise<void> => {
    for (let i = 0; !isOver; i++) {
      const event = { type: 'update', url: `https://shop.example/${publisher}/${i}`, data: { publisher, i } };
      const body = i % 5 === 0 ? [event, event, event] : event;
      await client.publish('load', body).then(
        (seqs) => acknowledged.push(...seqs),
        () => (isOver = true),
      );
    }
  };
  const all = Promise.all(Array.from({ length: publishers }, (_, n) => publish(n)));
  const reach = (count: number) =>
    until(`${count} events are acknowledged`, () => acknowledged.length >= count || undefined);
  return {
    acknowledged,
    reach,
    async stop() {
      isOver = true;
      await all;
    },
  };
}

it(
  'every acknowledged event arrives in order after kill -9 of the courier and of `up`',
  async () => {
    const client = await makeBusClient(product, 'load');
    const callback = `${receiver.url}/load`;
    await client.call('POST /bus/subscription', { body: { topics: ['load'], callback, timeout: 0, max: 7 } });
    const load = startLoad(client);
    await receiver.acceptedEvents(eventsBetween);
    const first = await courierPid();
    process.kill(first, 'SIGKILL');
    await load.reach(load.acknowledged.length + eventsBetween);
    await courierPid(first);
    await receiver.acceptedEvents(new Set(receiver.received.flatMap(({ seqs }) => seqs)).size + eventsBetween);
    product.child.kill('SIGKILL');
    await load.stop();
    product = await startProduct({ env, home: product.home });
    const after = startLoad(busClientOf(product.url, client.key));
    await after.reach(eventsBetween);
    await after.stop();

    const acknowledged = [...load.acknowledged, ...after.acknowledged].toSorted((a, b) => a - b);
    expect(new Set(acknowledged).size).toBe(acknowledged.length);
    const arrived = await until(
      'all acknowledged events have arrived',
      () => {
        const seqs = new Set(receiver.received.flatMap((batch) => batch.seqs));
        return acknowledged.every((seq) => seqs.has(seq)) ? [...seqs] : undefined;
      },
      maxWaitMs,
    );
    expect(arrived).toEqual(arrived.toSorted((a, b) => a - b));
    const bodies = new Map<string, string>();
    for (const { id, body } of receiver.received) {
      expect(bodies.get(id) ?? body).toBe(body);
      bodies.set(id, body);
    }
    expect(bodies.size).toBeGreaterThan(acknowledged.length / 7);
  },
  2 * maxWaitMs,
);
