import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeTenantDatabase, type TenantDatabase } from '../../../test/harness/tenant-database.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import type { BusEvent } from '../store.ts';
import { readPage, readTopics } from './log-queries.ts';

let database: TenantDatabase;
let db: Db;
beforeAll(async () => {
  database = await makeTenantDatabase();
  db = database.db;
});
afterAll(() => database.close());

const target = '01930000-0000-7000-8000-000000000001';
const atMs = Date.parse('2026-11-18T12:34:56.789Z');
const long = 'x'.repeat(300_000);

function event(seq: number, topicId: number, text: string, more: Partial<BusEvent> = {}): BusEvent {
  const body = `{"text":${JSON.stringify(text)},"id":"${seq}"}`;
  return { seq, topicId, keyHash: -seq, target: null, atMs, body, bytes: Buffer.byteLength(body), ...more };
}

/** The third is larger than any page. */
const events = [
  event(1, 1, 'plain'),
  event(3, 2, 'ümlaut, 漢字, 😀 and \n a line'),
  event(4, 1, long),
  event(5, 2, 'for one', { target }),
  event(9, 1, 'last'),
];
const numbers = (page: readonly BusEvent[]): number[] => page.map(({ seq }) => seq);
const large = 1_000_000;
const limits = { events: 10, bytes: large };

beforeAll(async () => {
  for (const each of events)
    await db.exec(sql`
      insert into bus_event (seq, topic_id, key_hash, target, at, body)
      values (${each.seq}, ${each.topicId}, ${each.keyHash}, ${each.target}, ${new Date(each.atMs)}, ${each.body})`);
});

it('a page has its events whole and in order, whatever their text', async () => {
  expect(await readPage(db, 0, large, limits)).toEqual(events);
  expect(await readPage(db, 0, 3, limits)).toEqual(events.slice(0, 2));
  expect(await readPage(db, 9, large, limits)).toEqual([]);
});

it('a page ends at its number of events or its bytes, and has at least one event', async () => {
  expect(numbers(await readPage(db, 0, large, { events: 2, bytes: large }))).toEqual([1, 3]);
  expect(numbers(await readPage(db, 0, large, { events: 10, bytes: 100_000 }))).toEqual([1, 3]);
  expect(numbers(await readPage(db, 3, large, { events: 10, bytes: 100_000 }))).toEqual([4]);
});

it.each([
  ['a few topics', []],
  ['more than 16 topics', Array.from({ length: 20 }, (_, i) => 100 + i)],
])('a page of %s says how far it looked', async (_, others) => {
  const read = async (after: number, to: number, most: number, bytes: number) => {
    const page = await readTopics(db, { after, to, topics: [1, ...others] }, { events: most, bytes });
    return [numbers(page.events), page.lookedTo];
  };
  expect(await read(0, 20, 10, large)).toEqual([[1, 4, 9], 20]);
  expect(await read(0, 20, 2, large)).toEqual([[1, 4], 4]);
  expect(await read(0, 20, 10, 100_000)).toEqual([[1], 1]);
  expect(await read(1, 20, 10, 100_000)).toEqual([[4], 4]);
  expect(await read(9, 20, 10, large)).toEqual([[], 20]);
  const page = await readTopics(db, { after: 4, to: 20, topics: [2, ...others] }, limits);
  expect(page.events).toEqual([events[3]]);
});

it('a page of more than 16 topics passes numbers without events at once', async () => {
  const topics = Array.from({ length: 20 }, (_, i) => 50 + i);
  const far = event(3_999_999, 60, 'after a gap');
  await db.exec(sql`
    insert into bus_event (seq, topic_id, key_hash, at, body)
    values (${far.seq}, ${far.topicId}, ${far.keyHash}, ${new Date(far.atMs)}, ${far.body})`);
  const read = (after: number, to: number) => readTopics(db, { after, to, topics }, limits);
  expect(await read(9, 3_999_999)).toEqual({ events: [far], lookedTo: 3_999_999 });
  expect(await read(9, 3_999_998)).toEqual({ events: [], lookedTo: 3_999_998 });
});
