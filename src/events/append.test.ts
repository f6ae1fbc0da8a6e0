import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import { type Db, sql } from '../kernel/sql.ts';
import { append, recording, topics } from './append.ts';
import { newestPosition, readEvents } from './queries.ts';

let database: TenantDatabase;
let db: Db;
beforeAll(async () => {
  database = await makeTenantDatabase();
  db = database.db;
});
afterAll(() => database.close());

const who = { actor: 'test', at: new Date('2026-01-01T00:00:00Z') };
const draft = (type: string) => ({ type, subject: null, body: { type } });
const typesAfter = async (after: number): Promise<string[]> =>
  (await readEvents(db, { after, limit: 10_000 })).map((event) => event.type);

/** Runs concurrent writers, some of which roll back, and a reader that follows by position. Returns how many events it missed. */
async function skippedBy(
  write: (tx: Db, type: string) => Promise<unknown>,
  read: (after: number) => Promise<[number, string][]>,
) {
  const written = new Set<string>();
  const seen = new Set<string>();
  let position = 0;
  let writing = true;
  const writer = async (name: number): Promise<void> => {
    for (let i = 0; i < 60; i++) {
      const type = `${name}.${i}`;
      const rolledBack = i % 7 === 3;
      await db
        .transaction(async (tx) => {
          await write(tx, type);
          // gives other transactions time to take numbers and to commit first
          await tx.exec(sql`select pg_sleep(${(name % 3) / 1_000})`);
          if (rolledBack) throw new Error('rolled back');
          written.add(type);
        })
        .catch(() => {});
    }
  };
  const reader = async (): Promise<void> => {
    for (let last = false; !last; ) {
      last = !writing;
      for (const [seq, type] of await read(position)) {
        position = seq;
        seen.add(type);
      }
    }
  };
  const reading = reader();
  await Promise.all([1, 2, 3, 4].map(writer));
  writing = false;
  await reading;
  const missed = [...written].filter((type) => !seen.has(type));
  return { written: written.size, missed: missed.length, extra: [...seen].filter((type) => !written.has(type)).length };
}

describe('the event log', () => {
  it('events become visible in the order of their numbers, with many writers and rollbacks', async () => {
    const from = await newestPosition(db);
    const result = await skippedBy(
      (tx, type) => append(tx, topics.millrace_jobs, [draft(type)], who),
      async (after) =>
        (await readEvents(db, { after: Math.max(after, from), limit: 1_000 })).map((e) => [e.seq, e.type]),
    );
    expect(result).toEqual({ written: 4 * 51, missed: 0, extra: 0 });
  });

  it('a reader of a bare sequence misses rows, which shows that the test above can fail', async () => {
    await db.exec(sql`create table bare (seq bigserial primary key, type text not null)`);
    const result = await skippedBy(
      (tx, type) => tx.exec(sql`insert into bare (type) values (${type})`),
      async (after) => {
        const rows = await db.rows<{ seq: number; type: string }>(sql`
          select seq, type from bare where seq > ${after} order by seq`);
        return rows.map((row) => [row.seq, row.type]);
      },
    );
    expect(result.missed).toBeGreaterThan(0);
  });

  it('a batch of events may continue in the next partition', async () => {
    await db.exec(sql`select setval('event_seq', 999990)`);
    await db.transaction((tx) =>
      append(
        tx,
        topics.millrace_runs,
        Array.from({ length: 20 }, (_, i) => draft(`over ${i}`)),
        who,
      ),
    );
    const events = await readEvents(db, { after: 999_990, limit: 100 });
    expect(events.map((event) => event.seq)).toEqual(Array.from({ length: 20 }, (_, i) => 999_991 + i));
    expect(events.map((event) => event.type)).toEqual(Array.from({ length: 20 }, (_, i) => `over ${i}`));
    expect(await db.rows(sql`select count(*) as n from event_1`)).toEqual([{ n: 11 }]);
  });

  it('events can be appended after a transaction that created a partition was rolled back', async () => {
    await db.exec(sql`select setval('event_seq', 1999995)`);
    const failing = db.transaction(async (tx) => {
      await append(
        tx,
        topics.millrace_runs,
        Array.from({ length: 20 }, () => draft('lost')),
        who,
      );
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    await Promise.all(
      ['a', 'b', 'c'].map((type) => db.transaction((tx) => append(tx, topics.millrace_runs, [draft(type)], who))),
    );
    expect((await typesAfter(1_999_995)).toSorted()).toEqual(['a', 'b', 'c']);
  });

  it('a connection that was open before a partition was created can append to it', async () => {
    const appendOne = (tx: Db, type: string) => append(tx, topics.millrace_jobs, [draft(type)], who);
    await db.transaction(async (old) => {
      await old.exec(sql`select count(*) from event`);
      await db.exec(sql`select setval('event_seq', 2999999)`);
      await db.transaction((tx) => appendOne(tx, 'first there'));
      await appendOne(old, 'from an old connection');
    });
    expect(await typesAfter(2_999_999)).toEqual(['first there', 'from an old connection']);
  });
});

describe('transactions with events', () => {
  it('events are appended in the commit of the change, after all its work', async () => {
    const after = await newestPosition(db);
    await db.exec(sql`create table change (id integer)`);
    await recording(db, who, async (tx) => {
      tx.record('millrace_jobs', draft('one'));
      await tx.exec(sql`insert into change values (1)`);
      tx.record('millrace_projects', {
        type: 'two',
        subject: null,
        cause: '00000000-0000-7000-8000-000000000001',
        body: {},
      });
      tx.record('millrace_jobs', draft('three'));
      expect(await newestPosition(db)).toBe(after);
    });
    const events = await readEvents(db, { after, limit: 10 });
    expect(events.map((event) => [event.topic, event.type, event.actor])).toEqual([
      ['millrace_jobs', 'one', 'test'],
      ['millrace_jobs', 'three', 'test'],
      ['millrace_projects', 'two', 'test'],
    ]);
    expect(events[2]).toMatchObject({ cause: '00000000-0000-7000-8000-000000000001', at: who.at });
  });

  it('a failed transaction leaves neither change nor event', async () => {
    const after = await newestPosition(db);
    const failing = recording(db, who, async (tx) => {
      tx.record('millrace_jobs', draft('never'));
      await tx.exec(sql`insert into change values (2)`);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await typesAfter(after)).toEqual([]);
    expect(await db.rows(sql`select id from change where id = 2`)).toEqual([]);
  });

  it('a transaction without events takes no number and no lock', async () => {
    const { n } = await db.one<{ n: number }>(sql`select last_value as n from event_seq`);
    await db.transaction(async (tx) => {
      await append(tx, topics.millrace_jobs, [draft('holding the log')], who);
      await recording(db, who, (other) => other.exec(sql`insert into change values (3)`));
    });
    expect((await db.one<{ n: number }>(sql`select last_value as n from event_seq`)).n).toBe(n + 1);
  });
});
