import { afterEach, expect, it, vi } from 'vitest';
import type { ClaimAnswer, ClaimedRun } from '../contract/wire.ts';
import { Claimer, type ClaimerOptions } from './claimer.ts';

interface Call {
  readonly wish: Parameters<ClaimerOptions['poll']>[0];
  readonly answer: (runs?: number) => void;
}

const patience = { timeout: 10_000, interval: 5 };
let claimer: Claimer | undefined;
afterEach(() => claimer?.stop());

/** A worker with one free place, for all tenants that are not full. */
async function setUp(): Promise<{
  calls: Call[];
  taken: number[];
  full: Set<string>;
  nth: (n: number) => Promise<Call>;
}> {
  const calls: Call[] = [];
  const taken: number[] = [];
  const full = new Set<string>();
  claimer = new Claimer({
    poll: (wish, signal) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('stopped')));
        const runs = (count: number): ClaimedRun[] => Array.from({ length: count }, () => ({}) as ClaimedRun);
        calls.push({ wish, answer: (count = 0) => resolve({ runs: runs(count) } as ClaimAnswer) });
      }),
    free: () => 1,
    without: () => [...full],
    take: ({ runs }) => taken.push(runs.length),
    waitMs: 10_000,
    onError: (error) => expect(error).toBeUndefined(),
  });
  const nth = (n: number): Promise<Call> =>
    vi.waitFor(() => {
      const call = calls[n - 1];
      if (call === undefined) throw new Error(`there were ${calls.length} polls`);
      return call;
    }, patience);
  await claimer.start();
  return { calls, taken, full, nth };
}

const soon = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

it('the claimer polls again at once when a left-out tenant has room, and accepts runs of both polls', async () => {
  const { calls, taken, full, nth } = await setUp();
  full.add('b').add('c');
  (await nth(1)).answer(1);
  const second = await nth(2);
  expect(second.wish).toEqual({ free: 1, without: ['b', 'c'], wait_ms: 10_000 });
  // room for tenants that were not left out is no reason to poll again
  claimer?.roomChanged();
  await soon();
  expect(calls).toHaveLength(2);
  full.delete('b');
  claimer?.roomChanged();
  const third = await nth(3);
  expect(third.wish.without).toEqual(['c']);
  third.answer(2);
  second.answer(3);
  await nth(4);
  expect(taken).toEqual([1, 2, 3]);
});

it('at most one older poll waits, and meanwhile polls are short', async () => {
  const { calls, full, nth } = await setUp();
  full.add('b');
  (await nth(1)).answer(1);
  const older = await nth(2);
  full.clear();
  claimer?.roomChanged();
  const third = await nth(3);
  expect(third.wish.wait_ms).toBeLessThan(100);
  full.add('b');
  third.answer(1);
  const fourth = await nth(4);
  full.clear();
  claimer?.roomChanged();
  await soon();
  expect(calls).toHaveLength(4);
  older.answer();
  fourth.answer(1);
  expect((await nth(5)).wish.wait_ms).toBe(10_000);
});

it('the claimer stops only after the replaced poll has ended', async () => {
  const { taken, full, nth } = await setUp();
  full.add('b');
  (await nth(1)).answer(1);
  const older = await nth(2);
  full.clear();
  claimer?.roomChanged();
  const newer = await nth(3);
  claimer?.quiet();
  newer.answer(1);
  await soon();
  older.answer(1);
  await soon();
  await claimer?.stop();
  expect(taken).toEqual([1, 1, 1]);
});
