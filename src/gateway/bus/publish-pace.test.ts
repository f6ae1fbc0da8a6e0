import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BatchTurns } from '../claims/batch-turns.ts';
import { PublishPace } from './publish-pace.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const tookMs = 10;

function setUp() {
  const turns = new BatchTurns();
  const pace = new PublishPace(turns);
  const begun: number[] = [];
  const startedMs = performance.now();
  /** Stores a group, which takes 10 ms, once the one before is stored. */
  const store = (tenant: string, events: number) =>
    pace.run(tenant, events, async () => {
      begun.push(performance.now() - startedMs);
      await new Promise((resolve) => void setTimeout(resolve, tookMs));
    });
  /** Stores two groups, and returns when each began. */
  const storeTwo = async (events: number): Promise<readonly number[]> => {
    const both = store('a', events).then(() => store('a', events));
    await vi.advanceTimersByTimeAsync(1_000);
    await both;
    return begun;
  };
  const run = (tenant: string): Promise<void> => turns.report(tenant, 1, async () => {});
  return { turns, pace, store, storeTwo, run };
}

it('a tenant that only publishes does not rest, and its groups may have any size', async () => {
  const { pace, storeTwo } = setUp();
  expect(await storeTwo(1_000)).toEqual([0, tookMs]);
  expect(pace.maxGroup('a')).toBe(Number.POSITIVE_INFINITY);
});

it.each(['a', 'b'])(
  'while runs of tenant %s are at work, tenant a rests after a large group of events',
  async (tenant) => {
    const { pace, storeTwo, run } = setUp();
    await run(tenant);
    expect(pace.maxGroup('a')).toBe(250);
    expect(await storeTwo(250)).toEqual([0, 4 * tookMs]);
  },
);

it('small groups of events do not rest', async () => {
  const { storeTwo, run } = setUp();
  await run('a');
  expect(await storeTwo(25)).toEqual([0, tookMs]);
});

it('a tenant whose runs ended five seconds ago does not rest', async () => {
  const { pace, storeTwo, run } = setUp();
  await run('a');
  await vi.advanceTimersByTimeAsync(5_001);
  expect(pace.maxGroup('a')).toBe(Number.POSITIVE_INFINITY);
  expect(await storeTwo(250)).toEqual([5_001, 5_001 + tookMs]);
});

it('a tenant rests after a group that failed, and at most 100 ms', async () => {
  const { pace, run } = setUp();
  await run('a');
  const failing = pace.run('a', 250, async () => {
    await new Promise((resolve) => void setTimeout(resolve, 1_000));
    throw new Error('the database hangs');
  });
  const failed = expect(failing).rejects.toThrow('hangs');
  await vi.advanceTimersByTimeAsync(1_000);
  await failed;
  let isBegun = false;
  const next = pace.run('a', 250, async () => {
    isBegun = true;
  });
  await vi.advanceTimersByTimeAsync(99);
  expect(isBegun).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  await next;
  expect(isBegun).toBe(true);
});

it('events of a tenant do not make its own runs take turns, and those of another tenant do', async () => {
  const { turns, store } = setUp();
  const stored = store('a', 1);
  await vi.advanceTimersByTimeAsync(tookMs);
  await stored;
  expect([turns.maxBatch('a'), turns.maxBatch('b')]).toEqual([Number.POSITIVE_INFINITY, 250]);
});
