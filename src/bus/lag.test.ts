/** The history of lag, as the scheduler writes it, on a real database. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { many, TestBus } from '../../test/harness/bus.ts';
import { until } from '../../test/harness/until.ts';
import { sql } from '../kernel/sql.ts';
import { sampleLag } from './lag.ts';

let bus: TestBus;
beforeEach(async () => {
  bus = await TestBus.make();
});
afterEach(() => bus?.close());

const callback = 'http://127.0.0.1:9/';
const noonMs = Date.parse('2026-01-01T12:00:00Z');
const samples = () =>
  bus.db.rows<{ at: Date; subscriber_id: string; queued: number; oldest_ms: number }>(sql`
    select at, subscriber_id, queued, oldest_ms from subscriber_activity order by at, subscriber_id`);
const queue = (id: string, queued: number, oldestMs: number) =>
  bus.db.exec(sql`update reader set queued = ${queued}, oldest_at = ${new Date(oldestMs)} where subscriber_id = ${id}`);

it('a sample sums the strands of each subscriber with queued events, and leaves out the others', async () => {
  const behind = await bus.subscribe({ callback, strands: 3 });
  await bus.subscribe({ callback });
  await queue(behind, 4, noonMs - 90_000);
  await bus.db.exec(sql`
    update reader set oldest_at = ${new Date(noonMs - 120_000)} where subscriber_id = ${behind} and strand = 1`);
  expect(await sampleLag(bus.db, noonMs + 500)).toBe(1);
  expect(await samples()).toEqual([{ at: new Date(noonMs), subscriber_id: behind, queued: 12, oldest_ms: 120_500 }]);
});

it('a minute keeps the most that was seen in it, beside the deliveries that were counted', async () => {
  const id = await bus.subscribe({ callback });
  await bus.db.exec(sql`
    insert into subscriber_activity (at, subscriber_id, events) values (${new Date(noonMs)}, ${id}, 7)`);
  await queue(id, 9, noonMs - 5_000);
  await sampleLag(bus.db, noonMs + 1_000);
  await queue(id, 2, noonMs);
  await sampleLag(bus.db, noonMs + 31_000);
  await sampleLag(bus.db, noonMs + 61_000);
  expect(await samples()).toMatchObject([
    { at: new Date(noonMs), queued: 9, oldest_ms: 31_000 },
    { at: new Date(noonMs + 60_000), queued: 2, oldest_ms: 61_000 },
  ]);
  const { events } = await bus.db.one<{ events: number }>(
    sql`select sum(events)::integer as events from subscriber_activity`,
  );
  expect(events).toBe(7);
});

it('samples at once, of several schedulers, write the same rows', async () => {
  const ids = await Promise.all(many(8).map(() => bus.subscribe({ callback })));
  for (const [i, id] of ids.entries()) await queue(id, i + 1, noonMs - 1_000);
  const counts = await Promise.all(many(6).map(() => sampleLag(bus.db, noonMs)));
  expect(counts).toEqual(counts.map(() => 8));
  const rows = await samples();
  expect(rows.map(({ queued }) => queued).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(new Set(rows.map(({ oldest_ms }) => oldest_ms))).toEqual(new Set([1_000]));
});

it('a tenant without queued events is not written to', async () => {
  await bus.subscribe({ callback });
  await bus.db.transaction(async (tx) => {
    expect(await sampleLag(tx, noonMs)).toBe(0);
    const { id } = await tx.one<{ id: string | null }>(sql`select pg_current_xact_id_if_assigned()::text as id`);
    expect(id).toBeNull();
  });
  expect(await samples()).toEqual([]);
});

it('the lag of a paused subscriber is recorded as it grows', async () => {
  const id = await bus.subscribe({ callback });
  await bus.db.exec(sql`update subscriber set state = 'paused' where id = ${id}`);
  await bus.startCourier();
  const counted = (queued: number) =>
    until(`${queued} events are counted`, async () => (await bus.readers(id))[0]?.queued === queued || undefined);
  await bus.publish(many(3));
  await counted(3);
  await sampleLag(bus.db, noonMs);
  await bus.publish(many(2));
  await counted(5);
  await sampleLag(bus.db, noonMs + 60_000);
  expect(await samples()).toMatchObject([{ queued: 3 }, { queued: 5 }]);
});
