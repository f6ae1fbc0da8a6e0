/** What the event bus of a running product does at once, without waiting for a sweep: events of SQL, and errands of a killed courier. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { onClient, sql } from '../../src/kernel/sql.ts';
import { onDatabase } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { makeBusClient } from '../harness/bus-client.ts';
import { type BusReceiver, makeBusReceiver } from '../harness/bus-receiver.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { controlAddress } from '../harness/second-tenant.ts';
import { until } from '../harness/until.ts';

let product: Product;
let receiver: BusReceiver;
beforeAll(async () => {
  receiver = await makeBusReceiver();
  product = await startProduct({ env: { MILLRACE_BUS_ALLOW_HTTP: 'true', MILLRACE_BUS_ALLOW_CIDRS: '127.0.0.0/8' } });
});
afterAll(async () => {
  await product?.stop();
  if (product !== undefined) await removeHome(product.home);
  await receiver?.close();
});

const addressOf = async (database: string) => onDatabase(await controlAddress(product.home), database);

it('events that SQL publishes arrive one after the other, faster than any sweep finds them', async () => {
  const client = await makeBusClient(product, 'letters');
  const callback = `${receiver.url}/letters`;
  await client.call('POST /bus/subscription', { body: { topics: ['letters'], callback, timeout: 0, max: 1 } });
  const rounds = 20;
  await withClient(await addressOf('millrace_default'), async (tenant) => {
    const publish = () => tenant.query("select millrace.publish('letters', 'update', 'https://example.com/1')");
    // the courier starts with the first subscriber
    await publish();
    await receiver.accepted(1, '/letters');
    const startedMs = performance.now();
    for (let round = 1; round <= rounds; round++) {
      await publish();
      await receiver.accepted(round + 1, '/letters');
    }
    // sweeps are 5 s apart
    expect(performance.now() - startedMs).toBeLessThan((rounds * 5_000) / 2);
  });
});

it('the errand of a killed courier is taken over although its beats would be fresh for an hour', async () => {
  const client = await makeBusClient(product, 'killed');
  const callback = `${receiver.url}/killed`;
  await client.call('POST /bus/subscription', { body: { topics: ['killed'], callback, timeout: 0, max: 1 } });
  receiver.reply = ({ path }) => (path === '/killed' ? 'hang' : 204);
  await client.publish('killed', { type: 'update', url: 'https://example.com/1' });
  await until('the batch is under way', () => receiver.received.some(({ path }) => path === '/killed') || undefined);
  const pid = await withClient(await addressOf('millrace'), async (control) => {
    const [row] = await onClient(control).rows<{ pid: number }>(
      sql`select pid from control.courier where lost_at is null`,
    );
    return row?.pid ?? 0;
  });
  process.kill(pid, 'SIGKILL');
  receiver.reply = () => 204;
  await withClient(await addressOf('millrace_default'), (tenant) =>
    tenant.query("update millrace.errand_worker set beat_at = now() + interval '1 hour'"),
  );
  await receiver.acceptedEvents(1, '/killed');
});
