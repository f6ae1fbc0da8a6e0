/**
 * A bus on a bad day: subscribers that keep up, fail, hang, were refused or are gone, one that is paused and one that pulls; a dead
 * letter, replays, and a signing secret. The product must allow http to this machine (`busEnvironment`).
 */
import { type BusReceiver, makeBusReceiver, type Reply } from '../bus-receiver.ts';
import { type BusClient, makeBusClient } from '../bus-client.ts';
import type { Product } from '../product.ts';
import { until } from '../until.ts';

export const busEnvironment = { MILLRACE_BUS_ALLOW_HTTP: 'true', MILLRACE_BUS_ALLOW_CIDRS: '127.0.0.0/8' } as const;

export interface SeededBus {
  readonly receiver: BusReceiver;
  readonly shop: BusClient;
  /** Names of subscribers by their service. */
  readonly names: ReadonlyMap<string, string>;
  /** Change how a service's receiver answers; a service that is not listed accepts. */
  readonly replies: Map<string, Reply>;
  /** The dead letter of `crm`. */
  readonly deadLetter: string;
  close(): Promise<void>;
}

const hourMs = 3_600_000;
const order = (n: number, more: object = {}) => ({
  type: n % 5 === 0 ? 'create' : 'update',
  url: `https://shop.example/orders/${1_000 + n}`,
  data: { total: 5 + n, currency: 'EUR' },
  ...more,
});
const orders = (count: number, more: object = {}) => Array.from({ length: count }, (_, i) => order(i, more));

interface Wish {
  readonly topics: string[];
  readonly [field: string]: unknown;
}

export async function seedBus(product: Product): Promise<SeededBus> {
  const receiver = await makeBusReceiver();
  const replies = new Map<string, Reply>();
  const names = new Map<string, string>();
  receiver.reply = ({ path }) => replies.get(path.slice(1)) ?? 204;
  const shop = await makeBusClient(product, 'shop');
  const add = async (service: string, { topics, ...wish }: Wish): Promise<BusClient> => {
    const client = await makeBusClient(product, service);
    const body = { topics, callback: `${receiver.url}/${service}`, timeout: 0, ...wish };
    await client.call('POST /bus/subscription', { body });
    names.set(service, (await client.call('GET /bus/subscriber')).subscriber);
    return client;
  };
  const nameOf = (service: string): string => names.get(service) ?? '';
  const read = (service: string) => product.call('GET /bus/subscribers/{id}', { params: { id: nameOf(service) } });

  await shop.publish('orders', order(0));
  await (await makeBusClient(product, 'depot')).publish('shipments', order(1));
  replies.set('warehouse', 503).set('legacy', 410).set('search', 'hang');
  const billing = await add('billing', {
    topics: ['orders'],
    filter: { type: ['create', 'update'], 'data.total': { $gte: 10 } },
  });
  await billing.call('POST /bus/subscriber/secret', { body: {} });
  await add('warehouse', { topics: ['orders', 'shipments'], max: 100, uuid: 'millrace' });
  await add('search', { topics: ['orders'], request_timeout: 300_000 });
  const reports = await add('reports', { topics: ['orders', 'shipments'], ordering: 'key', strands: 4 });
  await reports.call('POST /bus/subscriber/pause', { body: { reason: 'moves to the new host' } });
  await add('legacy', { topics: ['orders'] });
  await add('crm', { topics: ['refunds'], max: 10 });
  await add('ledger', { topics: ['orders'], kind: 'pull', callback: undefined, timeout: hourMs });

  await shop.publish('orders', orders(400));
  // a receiver that has accepted an event lately gives up those that it refuses
  await shop.publish('refunds', order(1));
  await receiver.accepted(1, '/crm');
  replies.set('crm', 422);
  await shop.publish('refunds', order(2));
  await until('the receivers have answered as they should', async () => {
    const [billed, failing, gone, refused, hanging] = await Promise.all(
      ['billing', 'warehouse', 'legacy', 'crm', 'search'].map(read),
    );
    const isHanging = hanging?.readers.some(({ errand }) => errand === 'pending');
    const isFailing = failing?.failing_since !== null && gone?.state === 'disabled';
    return (billed?.events.sent === 395 && isFailing && refused?.dead_letters === 1 && isHanging) || undefined;
  });
  const id = nameOf('billing');
  await product.call('POST /bus/subscribers/{id}/replays', { params: { id }, body: { from: '50', to: '120' } });
  await until('the replay is done', async () => {
    const { items } = await product.call('GET /bus/subscribers/{id}/replays', { params: { id }, query: {} });
    return items[0]?.state === 'done' || undefined;
  });
  const { items } = await product.call('GET /bus/dead_letters', { query: {} });
  return { receiver, shop, names, replies, deadLetter: items[0]?.id ?? '', close: () => receiver.close() };
}
