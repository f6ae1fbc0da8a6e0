import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import { until } from '../../test/harness/until.ts';
import { type Db, sql } from '../kernel/sql.ts';
import { append } from './append.ts';
import { type EventRetention, pruneEvents } from './prune.ts';
import { newestPosition, readEvents } from './queries.ts';

let database: TenantDatabase;
let db: Db;
beforeEach(async () => {
  database = await makeTenantDatabase();
  db = database.db;
});
afterEach(() => database.close());

const hour = (n: number): Date => new Date(Date.UTC(2026, 0, 1, n));

/** Appends an event with this number and time. */
async function write(seq: number, at: Date): Promise<void> {
  await db.exec(sql`select setval('event_seq', ${seq}, false)`);
  await db.transaction((tx) => append(tx, 2, [{ type: `${seq}`, subject: null, body: {} }], { actor: 'test', at }));
}

const numbers = async (): Promise<number[]> =>
  (await readEvents(db, { after: 0, limit: 10_000 })).map((event) => event.seq);

async function partitions(): Promise<string[]> {
  const rows = await db.rows<{ name: string }>(sql`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = 'event'::regclass order by inhrelid`);
  return rows.map((row) => row.name);
}

const keeping = (more: Partial<EventRetention>): EventRetention => ({
  before: undefined,
  most: undefined,
  now: hour(1_000),
  ...more,
});

describe('retention of events', () => {
  it('old events are dropped by partition, but the newest event is always kept', async () => {
    await write(1, hour(0));
    await write(1_000_000, hour(1));
    await write(2_000_000, hour(2));
    await write(2_000_001, hour(3));
    expect(await pruneEvents(db, keeping({ before: hour(2), now: hour(4) }))).toMatchObject({ more: false });
    expect(await partitions()).toEqual(['event_2']);
    expect(await numbers()).toEqual([2_000_000, 2_000_001]);
    await pruneEvents(db, keeping({ before: hour(100), now: hour(1_000) }));
    expect(await numbers()).toEqual([2_000_001]);
    expect(await newestPosition(db)).toBe(2_000_001);
    await write(2_000_002, hour(1_001));
    expect(await numbers()).toEqual([2_000_001, 2_000_002]);
  });

  it('old events are deleted row by row only if their partition takes longer than a day to fill', async () => {
    await write(1, hour(0));
    await write(2, hour(1));
    await write(3, hour(30));
    await pruneEvents(db, keeping({ before: hour(2), now: hour(20) }));
    expect(await numbers()).toEqual([1, 2, 3]);
    await pruneEvents(db, keeping({ before: hour(2), now: hour(31) }));
    expect(await numbers()).toEqual([3]);
  });

  it('surplus events are dropped by partition', async () => {
    for (const seq of [1, 1_000_000, 2_000_000, 3_000_000]) await write(seq, hour(0));
    await pruneEvents(db, keeping({ most: 2_000_000 }));
    expect(await partitions()).toEqual(['event_1', 'event_2', 'event_3']);
  });

  it('events that a reader has not read are kept, and the result names the reader', async () => {
    for (const seq of [1, 2, 1_000_000, 1_000_001, 2_000_000]) await write(seq, hour(0));
    const reader = (position: number) =>
      db.exec(sql`
        insert into event_reader (name, position, moved_at) values ('slow', ${position}, ${hour(0)})
        on conflict (name) do update set position = excluded.position`);
    await db.exec(sql`insert into event_reader (name, position, moved_at) values ('fast', 5000000, ${hour(0)})`);
    await reader(1_000_000);
    expect(await pruneEvents(db, keeping({ before: hour(1), most: 1 }))).toMatchObject({ heldBy: 'slow' });
    expect(await numbers()).toEqual([1_000_000, 1_000_001, 2_000_000]);
    await reader(1_000_001);
    // the reader has read every event of the partition, but its position is still below the partition's last number
    expect(await pruneEvents(db, keeping({ before: hour(1) }))).toMatchObject({ heldBy: 'slow' });
    await reader(1_999_999);
    expect(await pruneEvents(db, keeping({ before: hour(1) }))).toMatchObject({ heldBy: undefined });
    expect(await numbers()).toEqual([2_000_000]);
  });

  it('a partition that is being read is left for the next pass, without a long wait for its lock', async () => {
    for (const seq of [1, 1_000_000]) await write(seq, hour(0));
    await db.transaction(async (tx) => {
      await tx.rows(sql`select 1 from event`);
      expect(await pruneEvents(db, keeping({ before: hour(1) }))).toEqual({ events: 0, more: true, heldBy: undefined });
    });
    await until(
      'the partition is dropped',
      async () => !(await pruneEvents(db, keeping({ before: hour(1) }))).more || undefined,
    );
    expect(await partitions()).toEqual(['event_1']);
  });
});
