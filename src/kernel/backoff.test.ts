import { describe, expect, it } from 'vitest';
import { type Backoff, delayMs, persist } from './backoff.ts';

const plain: Backoff = { firstMs: 10, capMs: 1_000, jitter: 0 };
const quick: Backoff = { firstMs: 0, capMs: 0, jitter: 0 };

describe('backoff', () => {
  it('the delay doubles up to its cap, for any number of attempts', () => {
    expect([0, 1, 2, 6, 7, 1e9].map((attempt) => delayMs(plain, attempt))).toEqual([10, 20, 40, 640, 1_000, 1_000]);
  });

  it('jitter shortens the delay by at most its share, and never below 0', () => {
    expect(delayMs({ ...plain, jitter: 0.5 }, 0, () => 0)).toBe(10);
    expect(delayMs({ ...plain, jitter: 0.5 }, 0, () => 1)).toBe(5);
    expect(delayMs({ ...plain, jitter: 1 }, 3, () => 1)).toBe(0);
  });
});

describe('persist', () => {
  it('work is retried until it succeeds, and each failure is reported', async () => {
    const failures: unknown[] = [];
    let attempts = 0;
    const work = async (): Promise<string> => {
      if (++attempts < 4) throw new Error(`attempt ${attempts}`);
      return 'done';
    };
    expect(await persist(work, { backoff: quick, onRetry: (error) => failures.push(error) })).toBe('done');
    expect(failures).toHaveLength(3);
  });

  it('persist rejects as soon as giveUp accepts the error', async () => {
    let attempts = 0;
    const work = (): Promise<never> => Promise.reject(new Error(`attempt ${++attempts}`));
    await expect(persist(work, { backoff: quick, giveUp: () => attempts === 2 })).rejects.toThrow('attempt 2');
  });

  it('persist rejects when the signal aborts, even during a pause', async () => {
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
