/** One id of a batch always has the same bytes (I7), also after a subscriber with changed terms has moved back. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestBus } from '../../../test/harness/bus.ts';
import { type BusReceiver, makeBusReceiver } from '../../../test/harness/bus-receiver.ts';
import { until } from '../../../test/harness/until.ts';
import { sql } from '../../kernel/sql.ts';
import { resumeSubscriber } from '../subscribers/control.ts';
import { findById } from '../subscribers/queries.ts';
import { takeBatch } from '../subscribers/pull.ts';
import { ackBatch } from '../subscribers/pull-queries.ts';
import { startReplay } from '../subscribers/replays.ts';
import { changeSubscriber } from '../subscribers/subscribe.ts';

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

const context = () => ({ ...bus.ctx, db: bus.db });
const author = () => ({ actor: 'tests', at: new Date() });

async function subscriberOf(id: string) {
  const subscriber = await findById(bus.db, id);
  if (subscriber === undefined) throw new Error('the subscriber is missing');
  return subscriber;
}

const delivered = (id: string) =>
  until('all is delivered', async () => {
    const { fanned, head } = await bus.db.one<{ fanned: number; head: number }>(sql`
      select fanned, (select max(seq) from bus_event) as head from bus_state`);
    return fanned === head && (await bus.readers(id)).every(({ queued }) => queued === 0);
  });

/** All bodies of each batch. */
function bodiesById(path: string): Map<string, Set<string>> {
  const bodies = new Map<string, Set<string>>();
  for (const { id, body, path: of } of receiver.received)
    if (of === path) bodies.set(id, (bodies.get(id) ?? new Set()).add(body));
  return bodies;
}

const twoTopics = () =>
  bus.publish(Array.from({ length: 12 }, (_, i) => ({ topic: 1 + (i % 2), keyHash: i, data: { i } })));

it('a subscriber moves back after each change of its terms, and no id has two bodies', async () => {
  const callback = `${receiver.url}/moved`;
  const id = await bus.subscribe({ callback, topics: [1, 2], max: 100 });
  const from = String((await twoTopics())[0]);
  await delivered(id);
  const all = [1, 2];
  // the first and the last event stay, where the terms allow it
  const changes = [
    { topics: [1] },
    { topics: all, filter: { 'data.i': { $in: [0, 5, 10] } } },
    { topics: all, filter: { 'data.i': { $in: [0, 4, 10] } } },
    { topics: all, strands: 2 },
    { topics: all, strands: 3 },
    { topics: all },
  ];
  for (const more of [false, true])
    for (const terms of changes) {
      await bus.change(id, { callback, max: 100, ...terms });
      if (more) await twoTopics();
      await delivered(id);
      const sent = receiver.received.length;
      await resumeSubscriber(context(), author(), id, from);
      await delivered(id);
      expect(receiver.received.length).toBeGreaterThan(sent);
    }
  for (const [batch, bodies] of bodiesById('/moved')) expect([batch, bodies.size]).toEqual([batch, 1]);
});

it('events after the newest terms keep their ids, and a replay shares the ids of a move', async () => {
  const callback = `${receiver.url}/kept`;
  const id = await bus.subscribe({ callback, topics: [3], max: 2 });
  const three = () => bus.publish([{ topic: 3 }, { topic: 3 }]);
  const old = await three();
  await delivered(id);
  const terms = await bus.change(id, { callback, topics: [3, 4], max: 2 });
  const young = await three();
  await delivered(id);
  const received = () => receiver.received.filter(({ path }) => path === '/kept').map((batch) => batch.id.slice(9));
  await resumeSubscriber(context(), author(), id, String(old[0]));
  await delivered(id);
  const first = `0_${old.join('_')}`;
  const second = `0_${young.join('_')}`;
  const again = [`r${terms}_${old.join('_')}`, second];
  expect(received()).toEqual([first, second, ...again]);
  const range = { from: (old[0] ?? 0) - 1, to: young[1] ?? 0, onlyUndelivered: false };
  await startReplay(context(), author(), await subscriberOf(id), range);
  await until('the replay has sent both batches', () => received().length === 6);
  expect(received().slice(4)).toEqual(again);
});

it('a replay after terms that no event has met has other ids than one before them', async () => {
  const callback = `${receiver.url}/replayed`;
  const id = await bus.subscribe({ callback, topics: [5, 6] });
  const [first, , last] = await bus.publish([{ topic: 5 }, { topic: 6 }, { topic: 5 }]);
  await delivered(id);
  for (const topics of [[5], [5, 6]]) {
    await bus.change(id, { callback, topics });
    const sent = receiver.received.length;
    const range = { from: (first ?? 0) - 1, to: last ?? 0, onlyUndelivered: false };
    await startReplay(context(), author(), await subscriberOf(id), range);
    await until('the replay has sent its batch', () => receiver.received.length > sent);
  }
  const bodies = [...bodiesById('/replayed').values()];
  expect(bodies.map(({ size }) => size)).toEqual([1, 1, 1]);
});

it('a batch under retry keeps its id when the terms change', async () => {
  const callback = `${receiver.url}/retried`;
  const id = await bus.subscribe({ callback, topics: [7] });
  let isSick = true;
  receiver.reply = ({ path }) => (path === '/retried' && isSick ? 500 : 204);
  const events = await bus.publish([{ topic: 7 }, { topic: 7 }]);
  await until('an attempt has failed', () => receiver.received.some(({ path }) => path === '/retried'));
  await bus.change(id, { callback, topics: [7, 8] });
  isSick = false;
  await delivered(id);
  expect([...bodiesById('/retried').keys()]).toEqual([`${id.slice(-8)}_0_${events.join('_')}`]);
});

it('a consumer that pulls gets other ids for other terms as well', async () => {
  const id = await bus.subscribe({ callback: `${receiver.url}/pulled`, topics: [9, 10] });
  await changeSubscriber(context(), author(), id, { kind: 'pull' });
  const [first] = await bus.publish([{ topic: 9 }, { topic: 10 }, { topic: 9 }]);
  const pulled: string[] = [];
  for (const topics of [['topic_9'], ['topic_9', 'topic_10'], ['topic_9']]) {
    const batch = await until('a batch is there', async () => {
      const taken = await takeBatch(context(), await subscriberOf(id));
      return 'id' in taken ? taken : undefined;
    });
    pulled.push(batch.id);
    const spoken = { now: new Date(), isLogged: false };
    await ackBatch(bus.db, { subscriber: id, id: batch.id, lease: undefined }, spoken);
    await changeSubscriber(context(), author(), id, { topics });
    await resumeSubscriber(context(), author(), id, String(first));
  }
  expect(new Set(pulled).size).toBe(3);
});
