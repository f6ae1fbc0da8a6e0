/** The limit by bytes of the bus log, on a real database, with couriers and consumers that meet it. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { many, type Published, TestBus } from '../../../test/harness/bus.ts';
import { type BusReceiver, makeBusReceiver } from '../../../test/harness/bus-receiver.ts';
import { until } from '../../../test/harness/until.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { postgresErrands } from '../../errands/postgres.ts';
import { pruneTenant } from '../../scheduler/retention/prune.ts';
import { deliverKey } from '../errand-keys.ts';
import { postgresBusStore } from '../postgres/store.ts';
import { appendCopies } from '../relay/queries.ts';
import { ackBatch } from '../subscribers/pull-queries.ts';
import { findById } from '../subscribers/queries.ts';
import { takeBatch } from '../subscribers/pull.ts';
import { eventsDropped } from '../telemetry.ts';
import { dropPieces } from './drop-pieces.ts';
import { partitionSize } from './queries.ts';

let bus: TestBus;
let receiver: BusReceiver | undefined;
let lost: { subscriber: string; events: number }[];
beforeEach(async () => {
  bus = await TestBus.make();
  lost = [];
  eventsDropped.on(bus.ctx.telemetry, ({ subscriber, events }) => void lost.push({ subscriber, events }));
});
afterEach(async () => {
  await bus?.close();
  await receiver?.close();
  receiver = undefined;
});

const callback = 'http://127.0.0.1:9/';
/** So small that every closed piece must go. */
const noBytes = 1;
const drop = () => dropPieces(bus.ctx, bus.db, noBytes);

/** The next event gets the first number of another piece. */
async function closePiece(): Promise<void> {
  const { last } = await bus.db.one<{ last: number }>(sql`select last_value as last from bus_seq`);
  const next = Math.floor(last / partitionSize) + 1;
  await bus.db.exec(sql`select add_bus_partition(${next}::bigint)`);
  await bus.db.exec(sql`select setval('bus_seq', ${next * partitionSize - 1}::bigint)`);
}

/** Events in two pieces; couriers have counted those of both for all subscribers. */
async function publishPieces(old: readonly Published[], young: readonly Published[]): Promise<[number[], number[]]> {
  const first = await bus.publish(old);
  await closePiece();
  return [first, await bus.publish(young)];
}

async function countAll(): Promise<void> {
  const courier = await bus.startCourier({ isMortal: true });
  await until('all events are counted', async () => {
    const { done } = await bus.db.one<{ done: boolean }>(sql`
      select fanned >= (select max(seq) from bus_event) as done from bus_state`);
    return done;
  });
  await courier.stop();
}

const seqs = async (): Promise<number[]> =>
  (await bus.db.rows<{ seq: number }>(sql`select seq from bus_event order by seq`)).map(({ seq }) => seq);
const letters = (id: string) =>
  bus.db.rows<{ strand: number }>(sql`
    select batch, first_seq as first, last_seq as last, events, code, body
      from dead_letter where subscriber_id = ${id} order by batch`);
const recorded = () =>
  bus.db.rows<{ subject: string | null; body: unknown }>(sql`
    select subject, body::text as body from event where type = 'bus.dropped' order by seq`);
const pause = (id: string) => bus.db.exec(sql`update subscriber set state = 'paused' where id = ${id}`);

it('a log within its limit keeps everything', async () => {
  const [old, young] = await publishPieces(many(3), many(2));
  expect(await dropPieces(bus.ctx, bus.db, 2 ** 30)).toBe(0);
  expect(await seqs()).toEqual([...old, ...young]);
});

it('the oldest piece goes regardless of readers, and the gap is reported with its exact count', async () => {
  const all = await bus.subscribe({ callback });
  const some = await bus.subscribe({ callback, filter: { 'data.n': { $gte: 3 } } });
  const none = await bus.subscribe({ callback, topics: [2] });
  for (const id of [all, some, none]) await pause(id);
  const [old, young] = await publishPieces(
    many(5, (n) => ({ data: { n } })),
    many(4, (n) => ({ data: { n } })),
  );
  await countAll();
  expect(await drop()).toBeGreaterThan(0);
  expect(await seqs()).toEqual(young);
  const [first, last] = [1, old.at(-1)];
  const gap = { first, last, code: 'dropped', body: null };
  expect(await letters(all)).toMatchObject([{ ...gap, events: 5, batch: `${all.slice(-8)}_0_1_${last}` }]);
  expect(await letters(some)).toMatchObject([{ ...gap, events: 2 }]);
  expect(await letters(none)).toEqual([]);
  expect(await bus.readers(all)).toMatchObject([{ pos: last, queued: 4 }]);
  expect(await bus.readers(some)).toMatchObject([{ queued: 1 }]);
  expect(await bus.readers(none)).toMatchObject([{ queued: 0 }]);
  const events = (await recorded()).map(({ subject, body }) => ({ subject, ...JSON.parse(String(body)) }) as unknown);
  const numbers = { first: '1', last: String(last) };
  expect(events).toEqual([
    { subject: all, subscriber: `tests--${all}`, events: 5, ...numbers },
    { subject: some, subscriber: `tests--${some}`, events: 2, ...numbers },
  ]);
  expect(lost).toEqual([
    { subscriber: `tests--${all}`, events: 5 },
    { subscriber: `tests--${some}`, events: 2 },
  ]);
});

it('a drop without readers behind is recorded once, without a subject, and reports no loss', async () => {
  const [, young] = await publishPieces(many(3), many(1));
  await Promise.all([drop(), drop(), drop()]);
  expect(await seqs()).toEqual(young);
  expect(await recorded()).toMatchObject([{ subject: null }]);
  expect(lost).toEqual([]);
});

it('events that no courier has counted are counted for the report, by strand and revision', async () => {
  const id = await bus.subscribe({ callback, strands: 2 });
  await pause(id);
  await bus.publish(many(3, (n) => ({ keyHash: n })));
  await bus.change(id, { callback, topics: [2] });
  const young = await publishPieces(
    many(5, (n) => ({ keyHash: 1, topic: 1 + (n % 2) })),
    many(2, () => ({ topic: 2 })),
  );
  await drop();
  // keys 0, 1, 2 on two strands; then topic 2 twice, on the only strand that is left
  expect(await letters(id)).toMatchObject([{ events: 4 }, { events: 1 }]);
  await countAll();
  expect(await seqs()).toEqual(young[1]);
  expect(await bus.readers(id)).toMatchObject([{ queued: 2 }, { queued: 0 }]);
});

it('a subscriber continues after the gap, and its count ends at 0', async () => {
  receiver = await makeBusReceiver();
  const id = await bus.subscribe({ callback: `${receiver.url}/after`, max: 2 });
  await pause(id);
  const [, young] = await publishPieces(many(5), many(3));
  await countAll();
  await drop();
  await bus.db.exec(sql`update subscriber set state = 'active' where id = ${id}`);
  await bus.db.exec(
    sql`insert into errand (queue, key) values ('main', ${deliverKey({ subscriber: id, strand: 0 })}) on conflict do nothing`,
  );
  await bus.startCourier();
  await until('all is delivered', async () => (await bus.readers(id))[0]?.queued === 0);
  const ids = receiver.received.flatMap(({ body }) =>
    (JSON.parse(body) as { id: string }[]).map((event) => Number(event.id)),
  );
  expect(ids).toEqual(young);
});

it('an acknowledgement of a batch whose position was moved has no effect, and its courier loses the errand', async () => {
  const id = await bus.subscribe({ callback });
  const [old] = await publishPieces(many(3), many(2));
  await bus.db.exec(sql`update bus_state set fanned = (select max(seq) from bus_event)`);
  await bus.db.exec(sql`update reader set queued = 5 where subscriber_id = ${id}`);
  const [worker, errands] = [newId(), postgresErrands(bus.db)];
  await errands.push('main', [{ key: deliverKey({ subscriber: id, strand: 0 }) }]);
  const [held] = await errands.acquire('main', worker, 1, Date.now());
  await drop();
  const ack = {
    subscriber: id,
    strand: 0,
    lease: held?.lease ?? 0,
    from: 0,
    to: old[1] ?? 0,
    events: 2,
    batches: 1,
    nextAtMs: null,
  };
  const [result] = await postgresBusStore(bus.db, worker).done([ack], Date.now());
  expect(result).toMatchObject({ isHeld: false, pos: old.at(-1), queued: 2 });
});

it('a reader without events in the piece keeps its position, its closed batch and its errand', async () => {
  const id = await bus.subscribe({ callback, topics: [2] });
  const [, young] = await publishPieces(
    many(3),
    many(2, () => ({ topic: 2 })),
  );
  await bus.db.exec(sql`update bus_state set fanned = (select max(seq) from bus_event)`);
  await bus.db.exec(sql`update reader set queued = 2, batch_end = ${young[0] ?? 0} where subscriber_id = ${id}`);
  const [worker, errands] = [newId(), postgresErrands(bus.db)];
  await errands.push('main', [{ key: deliverKey({ subscriber: id, strand: 0 }) }]);
  const [held] = await errands.acquire('main', worker, 1, Date.now());
  expect(await drop()).toBeGreaterThan(0);
  expect(await bus.db.one(sql`select pos, batch_end from reader`)).toEqual({ pos: 0, batch_end: young[0] });
  const batch = { from: 0, to: young[0] ?? 0, events: 1, batches: 1, nextAtMs: null };
  const ack = { subscriber: id, strand: 0, lease: held?.lease ?? 0, ...batch };
  const [result] = await postgresBusStore(bus.db, worker).done([ack], Date.now());
  expect(result).toMatchObject({ isHeld: true, pos: young[0], queued: 1 });
});

it('a consumer that pulls cannot acknowledge a dropped batch, and gets the next one', async () => {
  const id = await bus.subscribe({ callback });
  await bus.db.exec(sql`update subscriber set kind = 'pull', callback = null where id = ${id}`);
  const [, young] = await publishPieces(many(3), many(2));
  await countAll();
  const subscriber = await findById(bus.db, id);
  if (subscriber === undefined) throw new Error('the subscriber is gone');
  const ctx = { ...bus.ctx, db: bus.db };
  const taken = await takeBatch(ctx, subscriber);
  if (!('id' in taken)) throw new Error('there is no batch');
  await drop();
  expect(
    await ackBatch(bus.db, { subscriber: id, id: taken.id, lease: taken.lease }, { now: new Date(), isLogged: true }),
  ).toBe(false);
  const next = await takeBatch(ctx, subscriber);
  expect('id' in next && next.id).toBe(`${id.slice(-8)}_0_${young[0]}_${young.at(-1)}`);
});

it('a running replay continues after the gap, and the drop names it', async () => {
  const id = await bus.subscribe({ callback });
  const [old, young] = await publishPieces(many(3), many(2));
  await bus.db.exec(sql`update bus_state set fanned = ${young.at(-1) ?? 0}`);
  const replay = newId();
  await bus.db.exec(sql`
    insert into replay (id, subscriber_id, from_seq, to_seq, pos, by, at)
    values (${replay}, ${id}, 0, ${young[1] ?? 0}, 0, 'tests', ${new Date()})`);
  await drop();
  expect(await bus.db.one(sql`select pos, state from replay`)).toEqual({ pos: old.at(-1), state: 'running' });
  expect(await letters(id)).toEqual([]);
  const [event] = await recorded();
  expect(event?.subject).toBe(id);
  expect(event?.body).toContain(replay);
});

it('while a foreign transaction reads the log, nothing is dropped and publishers go on', async () => {
  const [old, young] = await publishPieces(many(3), many(2));
  await bus.db.transaction(async (foreign) => {
    await foreign.exec(sql`select 1 from bus_event limit 1`);
    const dropping = drop();
    const more = await bus.publish(many(1));
    expect(await dropping).toBe(0);
    expect(await seqs()).toEqual([...old, ...young, ...more]);
  });
  expect(await drop()).toBeGreaterThan(0);
});

it('appending closes a piece at a tenth of the limit, so a drop keeps about nine tenths', async () => {
  const id = await bus.subscribe({ callback });
  await pause(id);
  const limit = 4 * 1024 * 1024;
  // tells appending the size of a piece
  await dropPieces(bus.ctx, bus.db, limit);
  const body = `{"topic":"topic_1","type":"update","url":"https://example.org/1","t":1,"data":{"x":"${'x'.repeat(1_000)}"}`;
  const page = many(500).map(() => ({ topicId: 1, keyHash: 0, body }));
  for (let pages = 0; pages < 14; pages++) await bus.db.transaction((tx) => appendCopies(tx, page, new Date()));
  const size = async (): Promise<number> =>
    (
      await bus.db.one<{ bytes: number }>(sql`
        select sum(pg_total_relation_size(inhrelid))::float8 as bytes
          from pg_inherits where inhparent = 'bus_event'::regclass`)
    ).bytes;
  const before = await size();
  expect(before).toBeGreaterThan(limit * 1.5);
  await pruneTenant({
    ...bus.ctx,
    settings: {
      ...bus.ctx.settings,
      bus: { maxDataBytes: 64, retentionMs: 2 ** 40, maxBytes: limit, giveUpMs: 2 ** 40, maxConnections: 8 },
    },
  });
  const after = await size();
  expect(after).toBeLessThanOrEqual(limit);
  expect(after).toBeGreaterThan(limit * 0.6);
  const left = await seqs();
  const dropped = await letters(id);
  const counted = await bus.db.one<{ n: number }>(sql`select sum(events)::integer as n from dead_letter`);
  expect(dropped.length).toBeGreaterThan(2);
  expect(counted.n + left.length).toBe(14 * 500);
});

it('every event of a reader that moves while its log is dropped was delivered, or is reported once', async () => {
  receiver = await makeBusReceiver();
  const id = await bus.subscribe({ callback: `${receiver.url}/moving`, max: 5 });
  const [old, young] = await publishPieces(many(3_000), many(300));
  await bus.startCourier();
  await until('deliveries have begun', async () => (receiver?.received.length ?? 0) > 10);
  expect(await drop()).toBeGreaterThan(0);
  await until('all is delivered', async () => {
    const [reader] = await bus.readers(id);
    return reader?.pos === young.at(-1) && reader?.queued === 0;
  });
  const [reader] = await bus.readers(id);
  expect((reader?.sent ?? 0) + lost.reduce((sum, { events }) => sum + events, 0)).toBe(old.length + young.length);
  // the warning of the drop, and none about events that are missing
  expect(bus.ctx.faults).toHaveLength(1);
});
