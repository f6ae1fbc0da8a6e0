/** Deliveries end to end: a real database, real receivers, one courier. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sql } from '../../kernel/sql.ts';
import { many, TestBus } from '../../../test/harness/bus.ts';
import { type BusReceiver, makeBusReceiver } from '../../../test/harness/bus-receiver.ts';
import { until } from '../../../test/harness/until.ts';

let bus: TestBus;
let receiver: BusReceiver;

beforeAll(async () => {
  bus = await TestBus.make();
  receiver = await makeBusReceiver();
  await bus.startCourier();
});

afterAll(async () => {
  await bus?.close();
  await receiver?.close();
});

describe('a courier', () => {
  it('delivers events in full batches, in order, and removes the errand', async () => {
    const id = await bus.subscribe({ callback: `${receiver.url}/full`, topics: [1], max: 10 });
    const seqs = await bus.publish(many(25));
    expect(await receiver.acceptedEvents(25, '/full')).toEqual(seqs);
    const batches = receiver.received.filter(({ path }) => path === '/full');
    expect(batches.map((batch) => batch.seqs.length)).toEqual([10, 10, 5]);
    const [first] = batches;
    expect(first?.id).toBe(`${id.slice(-8)}_0_${seqs[0]}_${seqs[9]}`);
    expect(first?.headers['content-type']).toBe('application/json');
    expect(first?.headers.authorization).toBe(`Basic ${Buffer.from(`uuid-${id}:x`).toString('base64')}`);
    expect(first?.headers['millrace-attempt']).toBe('1');
    expect(first?.headers['traceparent']).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    await until('the errand is gone', async () => {
      const { n } = await bus.db.one<{ n: number }>(sql`select count(*) as n from errand where key like ${`%${id}%`}`);
      return n === 0;
    });
    const [reader] = await bus.readers(id);
    expect(reader).toMatchObject({ pos: seqs.at(-1), queued: 0, sent: 25, batch_end: null, oldest_at: null });
  });
});
