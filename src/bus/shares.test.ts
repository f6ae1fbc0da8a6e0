/** Several couriers of one tenant: how they share its errands, and what becomes of those of a courier whose process is gone. */
import { countHeld } from '../../test/harness/errands.ts';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { many, TestBus } from '../../test/harness/bus.ts';
import { type BusReceiver, makeBusReceiver } from '../../test/harness/bus-receiver.ts';
import { until } from '../../test/harness/until.ts';
import { postgresErrands } from '../errands/postgres.ts';
import { newId } from '../kernel/id.ts';
import { pause } from '../kernel/service.ts';
import { sql } from '../kernel/sql.ts';

let bus: TestBus;
let receiver: BusReceiver;
beforeEach(async () => {
  bus = await TestBus.make();
  receiver = await makeBusReceiver();
});
afterEach(async () => {
  await bus?.close();
  await receiver?.close();
});

const held = (worker: string): Promise<number> => countHeld(bus.db, worker);

it('a courier gives back what is beyond its share when another one joins, and each batch is accepted once', async () => {
  const readers = 12;
  for (let i = 0; i < readers; i++) await bus.subscribe({ callback: `${receiver.url}/${i}`, topics: [i + 1], max: 1 });
  // slow, so that no reader runs out of events before the other courier joins
  let isSlow = true;
  receiver.reply = async () => {
    if (isSlow) await pause(50);
    return 204;
  };
  let others = 0;
  const [first, second] = [newId(), newId()];
  await bus.startCourier({ id: first, others: () => others });
  const count = 400;
  await bus.publish(many(readers * count, (i) => ({ topic: (i % readers) + 1 })));
  await until('the first courier has all readers', async () => (await held(first)) === readers);
  others = 1;
  await bus.startCourier({ id: second, others: () => others });
  // half of them, and two
  const share = readers / 2 + 2;
  await until(
    'both have their share',
    async () => (await held(first)) <= share && (await held(second)) >= readers - share,
  );
  isSlow = false;
  await until('all is delivered', async () => {
    const { left } = await bus.db.one<{ left: number }>(sql`select sum(queued)::integer as left from reader`);
    return left === 0;
  });
  const ids = receiver.received.filter(({ status }) => status === 204).map(({ id }) => id);
  expect(new Set(ids).size).toBe(readers * count);
});

it('errands of a courier whose process is gone are taken over at once, although its last beat is fresh', async () => {
  const gone = newId();
  const id = await bus.subscribe({ callback: `${receiver.url}/gone` });
  const [seq] = await bus.publish(many(1), false);
  await bus.db.exec(sql`update bus_state set fanned = ${seq ?? 0}`);
  await bus.db.exec(sql`update reader set queued = 1, oldest_at = now() where subscriber_id = ${id}`);
  const errands = postgresErrands(bus.db);
  await errands.push('main', [{ key: `["deliver",["${id}",0]]` }]);
  // as if its beats came from the future: only what is known of its process can free the errand
  const later = Date.now() + 3_600_000;
  await errands.acquire('main', gone, 1, later);
  await errands.beat(gone, [], later);
  await bus.startCourier({ lost: () => [gone] });
  expect(await receiver.acceptedEvents(1, '/gone')).toEqual([seq]);
});
