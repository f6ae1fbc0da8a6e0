/** Retention of the bus, as the scheduler's housekeeping runs it, on a real database. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { many, TestBus } from '../../../test/harness/bus.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { dayMs } from '../../kernel/text/duration.ts';
import { pruneTenant } from '../../scheduler/retention/prune.ts';

let bus: TestBus;
beforeEach(async () => {
  bus = await TestBus.make();
});
afterEach(() => bus?.close());

const limits = { maxDataBytes: 64, retentionMs: 7 * dayMs, maxBytes: 2 ** 40, giveUpMs: dayMs, maxConnections: 8 };
const prune = () => pruneTenant({ ...bus.ctx, settings: { ...bus.ctx.settings, bus: limits } });
const ago = (days: number) => new Date(Date.now() - days * dayMs);
const old = (count: number) => many(count, () => ({ atMs: Date.now() - 8 * dayMs }));

async function left(): Promise<number[]> {
  return (await bus.db.rows<{ seq: number }>(sql`select seq from bus_event order by seq`)).map(({ seq }) => seq);
}

async function count(table: string): Promise<number> {
  const rows = await bus.db.rows<{ n: number }>(
    sql`select (xpath('/row/n/text()', query_to_xml(format('select count(*) as n from %I', ${table}::text), false, true, '')))[1]::text::integer as n`,
  );
  return rows[0]?.n ?? -1;
}

it('deletes old events that everyone has passed, and keeps young ones', async () => {
  const gone = await bus.publish(old(5));
  const young = await bus.publish(many(2));
  await bus.db.exec(sql`update bus_state set fanned = ${gone[3] ?? 0}`);
  await prune();
  expect(await left()).toEqual([gone[4], ...young]);
  await bus.db.exec(sql`update bus_state set fanned = ${young[1] ?? 0}`);
  await prune();
  expect(await left()).toEqual(young);
});

it('keeps the newest event, which holds the end of the log', async () => {
  const seqs = await bus.publish(old(3));
  await bus.db.exec(sql`update bus_state set fanned = ${seqs[2] ?? 0}`);
  await prune();
  expect(await left()).toEqual([seqs[2]]);
});

it('keeps events that a reader or a running replay has not passed', async () => {
  const id = await bus.subscribe({ callback: 'http://127.0.0.1:9/' });
  const seqs = await bus.publish(old(6));
  await bus.db.exec(sql`update bus_state set fanned = ${seqs[5] ?? 0}`);
  await bus.db.exec(sql`update reader set pos = ${seqs[2] ?? 0}, queued = 3 where subscriber_id = ${id}`);
  const replay = newId();
  await bus.db.exec(sql`
    insert into replay (id, subscriber_id, from_seq, to_seq, pos, by, at)
    values (${replay}, ${id}, 0, ${seqs[5] ?? 0}, ${seqs[0] ?? 0}, 'tests', ${new Date()})`);
  await prune();
  expect(await left()).toEqual(seqs.slice(1));
  await bus.db.exec(sql`update replay set state = 'done' where id = ${replay}`);
  await prune();
  expect(await left()).toEqual(seqs.slice(3));
  // nothing queued: it has come as far as fan-out, whatever its position
  await bus.db.exec(sql`update reader set queued = 0 where subscriber_id = ${id}`);
  await prune();
  expect(await left()).toEqual(seqs.slice(5));
});

it('drops a partition that is old and passed as a whole', async () => {
  await bus.publish(old(3));
  await bus.db.exec(sql`select add_bus_partition(1)`);
  await bus.db.exec(sql`select setval('bus_seq', 4000000)`);
  const young = await bus.publish(many(2));
  await bus.db.exec(sql`update bus_state set fanned = ${young[1] ?? 0}`);
  await prune();
  expect(await left()).toEqual(young);
  const { table } = await bus.db.one<{ table: string | null }>(sql`select to_regclass('bus_event_0')::text as table`);
  expect(table).toBeNull();
  expect(await bus.publish(many(1))).toHaveLength(1);
});

it('deletes old keys of publishers, deliveries, activity and finished replays, and keeps young ones', async () => {
  const id = await bus.subscribe({ callback: 'http://127.0.0.1:9/' });
  for (const [key, days] of [
    ['old', 2],
    ['new', 0],
  ] as const)
    await bus.db.exec(
      sql`insert into publish_key (topic_id, key, seq, last_seq, at) values (1, ${key}, 1, 1, ${ago(days)})`,
    );
  for (const days of [8, 0]) {
    const at = ago(days);
    await bus.db.exec(sql`insert into topic_activity (at, topic_id, events) values (${at}, 1, 1)`);
    await bus.db.exec(sql`insert into subscriber_activity (at, subscriber_id) values (${at}, ${id})`);
    await bus.db.exec(
      sql`insert into delivery (subscriber_id, at, batch, attempt, events, ms) values (${id}, ${at}, 'b', 1, 1, 1)`,
    );
  }
  for (const [state, days] of [
    ['done', 31],
    ['running', 31],
    ['failed', 1],
  ] as const)
    await bus.db.exec(sql`
      insert into replay (id, subscriber_id, from_seq, to_seq, pos, state, by, at)
      values (${newId()}, ${id}, 0, 0, 0, ${state}, 'tests', ${ago(days)})`);
  await prune();
  for (const table of ['publish_key', 'topic_activity', 'subscriber_activity', 'delivery'])
    expect({ table, rows: await count(table) }).toEqual({ table, rows: 1 });
  const replays = await bus.db.rows<{ state: string }>(sql`select state from replay order by state`);
  expect(replays.map(({ state }) => state)).toEqual(['failed', 'running']);
});

it('deletes a revision once all readers have passed the next one', async () => {
  const callback = 'http://127.0.0.1:9/';
  const id = await bus.subscribe({ callback });
  const seqs = await bus.publish(many(3));
  await bus.change(id, { callback, topics: [1, 2] });
  await bus.db.exec(sql`update bus_state set fanned = ${seqs[2] ?? 0}`);
  await bus.db.exec(sql`update reader set queued = 3 where subscriber_id = ${id}`);
  await prune();
  expect(await count('subscription')).toBe(2);
  await bus.db.exec(sql`update reader set queued = 1, pos = ${seqs[2] ?? 0} where subscriber_id = ${id}`);
  await prune();
  const rows = await bus.db.rows<{ from_seq: number }>(sql`select from_seq from subscription`);
  expect(rows).toEqual([{ from_seq: seqs[2] }]);
});

it('deletes a deleted topic once it has neither events nor subscriptions', async () => {
  await bus.subscribe({ callback: 'http://127.0.0.1:9/', topics: [3] });
  await bus.publish([{ topic: 2 }, { topic: 1 }]);
  await bus.db.exec(sql`update bus_topic set deleted_at = ${ago(8)} where id in (2, 3, 4)`);
  await bus.db.exec(sql`update bus_topic set deleted_at = ${ago(1)} where id = 5`);
  await prune();
  const rows = await bus.db.rows<{ id: number }>(
    sql`select id from bus_topic where deleted_at is not null order by id`,
  );
  expect(rows.map((row) => row.id)).toEqual([2, 3, 5]);
});
