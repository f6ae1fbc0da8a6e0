import { afterEach, beforeEach, expect, it } from 'vitest';
import { many, TestBus } from '../../../test/harness/bus.ts';
import type { Db } from '../../kernel/sql.ts';
import { groupBy } from '../../kernel/group-by.ts';
import { readRevisions } from '../postgres/log-queries.ts';
import { countWays, type Way } from './ways.ts';

let bus: TestBus;
beforeEach(async () => {
  bus = await TestBus.make();
});
afterEach(() => bus.close());

const callback = 'http://127.0.0.1:9/';
const odd = { 'data.n': { $in: [1, 3, 5, 7, 9] } };

/** Counts the statements. */
function counting(db: Db): { db: Db; statements: () => number } {
  let n = 0;
  const counted = new Proxy(db, {
    get: (target, name: keyof Db) => {
      n += 1;
      return target[name];
    },
  });
  return { db: counted, statements: () => n };
}

it('the ways of many readers are counted in two statements, by topic, target, strand, filter and revision', async () => {
  const plain = await bus.subscribe({ callback, strands: 2 });
  const filtered = await bus.subscribe({ callback, filter: odd, topics: [1, 2] });
  const target = await bus.subscribe({ callback, topics: [3] });
  const changed = await bus.subscribe({ callback, topics: [2] });
  const first = await bus.publish(many(10, (n) => ({ keyHash: n, topic: 1 + (n % 2), data: { n } })));
  await bus.change(changed, { callback, topics: [1], filter: odd });
  const second = await bus.publish(many(10, (n) => ({ keyHash: n, topic: 1 + (n % 2), data: { n: n + 1 } })));
  await bus.publish([
    { topic: 3, target },
    { topic: 3, target: plain },
  ]);
  const end = (second.at(-1) ?? 0) + 2;
  const way = (subscriber: string, strand = 0, from = 0, to = end): Way => ({ subscriber, strand, from, to });
  const ways = [
    // keys 0, 2, 4, 6, 8 of topic 1, twice; strand 1 has keys of topic 2 only
    way(plain, 0),
    way(plain, 1),
    way(plain, 0, 0, first.at(-1)),
    // n of 1, 3, 5, 7, 9 in both parts
    way(filtered),
    way(filtered, 0, first[4], second[4]),
    way(target),
    // topic 2 five times; then topic 1 has n of 1, 3, 5, 7, 9
    way(changed),
    way(changed, 0, first.at(-1)),
    way(changed, 0, 5, 5),
    ...many(30).map(() => way(filtered)),
  ];
  const { revisions } = await readRevisions(bus.db);
  const bySubscriber = groupBy(revisions, ({ subscriber }) => subscriber);
  const { db, statements } = counting(bus.db);
  const counts = await countWays(db, (subscriber) => bySubscriber.get(subscriber) ?? [], ways);
  expect(counts).toEqual([10, 0, 5, 10, 6, 1, 10, 5, 0, ...many(30).map(() => 10)]);
  expect(statements()).toBe(2);
  expect(await countWays(db, () => [], [way(plain)])).toEqual([0]);
  expect(statements()).toBe(2);
});
