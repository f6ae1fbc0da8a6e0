import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import type { Hints } from '../contract/channels.ts';
import { append } from './append.ts';
import { follow, type FollowOptions } from './follow.ts';
import { findTopic, newestPosition } from './queries.ts';

let database: TenantDatabase;
beforeAll(async () => {
  database = await makeTenantDatabase();
});
afterAll(() => database.close());

const asleep: Hints = { send: () => {}, on: () => () => {} };

async function write(topicId: number, ...types: string[]): Promise<void> {
  const events = types.map((type) => ({ type, subject: null, body: {} }));
  await database.db.transaction((tx) => append(tx, topicId, events, { actor: 'test', at: new Date() }));
}

/** Types page by page, until `enough` events have come. */
async function read(
  options: Omit<FollowOptions, 'signal'>,
  enough: number,
  hints: Hints = asleep,
): Promise<string[][]> {
  const stop = new AbortController();
  const pages: string[][] = [];
  for await (const page of follow({ db: database.db, hints }, { ...options, signal: stop.signal })) {
    pages.push(page.map((event) => event.type));
    if (pages.flat().length >= enough) stop.abort();
  }
  return pages;
}

describe('following the log', () => {
  it('follow reads pages by position, and later events without any wake-up', async () => {
    const after = await newestPosition(database.db);
    await write(2, 'a', 'b', 'c');
    const reading = read({ after, pageSize: 2, sweepMs: 20 }, 4);
    await write(3, 'd');
    expect((await reading).flat()).toEqual(['a', 'b', 'c', 'd']);
  });

  it('follow can be limited to one topic', async () => {
    const after = await newestPosition(database.db);
    await write(2, 'job');
    await write(3, 'run');
    const topicId = await findTopic(database.db, 'millrace_runs');
    expect(await read({ after, topicId }, 1)).toEqual([['run']]);
    expect(await findTopic(database.db, 'nonsense')).toBeUndefined();
  });

  it('a wake-up makes follow read before its next sweep', async () => {
    let ring = (): void => {};
    const listening = new Promise<void>((resolve) => {
      ring = resolve;
    });
    let listener = (): void => {};
    const hints: Hints = {
      send: () => {},
      on: (_, heard) => {
        listener = heard;
        ring();
        return () => {};
      },
    };
    const after = await newestPosition(database.db);
    const reading = read({ after, sweepMs: 600_000 }, 1, hints);
    await listening;
    await write(2, 'woken');
    listener();
    expect(await reading).toEqual([['woken']]);
  });

  it('follow yields an empty page after a sweep without events, and ends when its signal aborts', async () => {
    const stop = new AbortController();
    const after = await newestPosition(database.db);
    const pages = follow({ db: database.db, hints: asleep }, { after, sweepMs: 1, signal: stop.signal });
    expect(await pages.next()).toEqual({ done: false, value: [] });
    stop.abort();
    expect(await pages.next()).toEqual({ done: true, value: undefined });
  });

  it('follow misses no event of concurrent writers', async () => {
    const after = await newestPosition(database.db);
    const reading = read({ after, pageSize: 7, sweepMs: 1 }, 200);
    await Promise.all(
      Array.from({ length: 40 }, (_, i) => write(2 + (i % 2), ...Array.from({ length: 5 }, (_, j) => `${i}.${j}`))),
    );
    expect(new Set((await reading).flat()).size).toBe(200);
  });
});
