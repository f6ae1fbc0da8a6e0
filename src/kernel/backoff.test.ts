import { describe, expect, it } from 'vitest';
import { type Backoff, delayMs, persist } from './backoff.ts';

const plain: Backoff = { firstMs: 10, capMs: 1_000, jitter: 0 };
const quick: Backoff = { firstMs: 0, capMs: 0, jitter: 0 };

describe('a backoff', () => {
  it('doubles up to its cap, however many attempts there were', () => {
    expect([0, 1, 2, 6, 7, 1e9].map((attempt) => delayMs(plain, attempt))).toEqual([10, 20, 40, 640, 1_000, 1_000]);
  });

  it('takes off up to its jitter, never more and never below nothing', () => {
    expect(delayMs({ ...plain, jitter: 0.5 }, 0, () => 0)).toBe(10);
    expect(delayMs({ ...plain, jitter: 0.5 }, 0, () => 1)).toBe(5);
    expect(delayMs({ ...plain, jitter: 1 }, 3, () => 1)).toBe(0);
  });
});

describe('persisting', () => {
  it('tries until it succeeds, telling of each failure', async () => {
    const told: unknown[] = [];
    let attempts = 0;
    const work = async (): Promise<string> => {
      if (++attempts < 4) throw new Error(`attempt ${attempts}`);
      return 'done';
    };
    expect(await persist(work, { backoff: quick, onRetry: (error) => told.push(error) })).toBe('done');
    expect(told).toHaveLength(3);
  });

  it('gives up on what will not go away', async () => {
    let attempts = 0;
    const work = (): Promise<never> => Promise.reject(new Error(`attempt ${++attempts}`));
    await expect(persist(work, { backoff: quick, giveUp: () => attempts === 2 })).rejects.toThrow('attempt 2');
  });

  it('gives up when the signal aborts, in the middle of a pause, too', async () => {
    const stop = new AbortController();
    const work = (): Promise<never> => Promise.reject(new Error('no'));
    const slow = { firstMs: 60_000, capMs: 60_000, jitter: 0 };
    const trying = persist(work, {
      backoff: slow,
      signal: stop.signal,
      onRetry: () => setImmediate(() => stop.abort()),
    });
    await expect(trying).rejects.toThrow('no');
  });
});
