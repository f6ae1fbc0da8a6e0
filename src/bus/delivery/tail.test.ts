/** The tail of the log in one courier, while another courier counts its events. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { TestBus } from '../../../test/harness/bus.ts';
import { newId } from '../../kernel/id.ts';
import { postgresBusStore } from '../postgres/store.ts';
import { Tail } from './tail.ts';

let bus: TestBus;
beforeEach(async () => {
  bus = await TestBus.make();
});
afterEach(() => bus?.close());

const makeTail = (): Tail =>
  new Tail({ store: postgresBusStore(bus.db, newId()), now: () => Date.now(), onNews: () => {} });
const advanceAll = async (tail: Tail): Promise<void> => {
  while ((await tail.advance(0)).isMoved);
};
const sized = (bytes: number) => ({ data: { text: 'x'.repeat(bytes) } });

it.each([
  ['small', 100],
  ['almost as large as a page', 900_000],
])('events that another courier has counted are read whole, also if one of them is %s', async (_, bytes) => {
  const id = await bus.subscribe({ callback: 'http://127.0.0.1:9/' });
  const [own, rival] = [makeTail(), makeTail()];
  await bus.publish([sized(1)], false);
  await advanceAll(own);
  const numbers = await bus.publish([sized(200_000), sized(bytes)], false);
  await advanceAll(rival);
  await own.ensure(await postgresBusStore(bus.db, newId()).readState());
  const subscription = own.subscriptionOf(id);
  if (subscription === undefined) throw new Error('the subscription is unknown');
  const found: number[] = [];
  for (let after = 1; after < own.fanned; ) {
    const { events, lookedTo } = await own.read(subscription, after, own.fanned);
    found.push(...events.map(({ seq }) => seq));
    after = lookedTo;
  }
  expect(found).toEqual(numbers);
});
