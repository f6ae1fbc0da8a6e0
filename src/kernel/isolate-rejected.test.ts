import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isolateRejected } from './isolate-rejected.ts';

const rejection = new Error('rejected');
const isRejection = (error: unknown): boolean => error === rejection;
const numbersUpTo = (length: number): number[] => Array.from({ length }, (_, i) => i);

/** A receiver that rejects every batch with one of these items in it. */
function makeReceiver(bad: ReadonlySet<number>): {
  written: number[];
  calls: () => number;
  write: (some: readonly number[]) => Promise<void>;
} {
  const written: number[] = [];
  let calls = 0;
  const write = async (some: readonly number[]): Promise<void> => {
    calls += 1;
    if (some.some((item) => bad.has(item))) throw rejection;
    written.push(...some);
  };
  return { written, calls: () => calls, write };
}

describe('isolateRejected', () => {
  it('a batch without a rejected item is written at once', async () => {
    const receiver = makeReceiver(new Set());
    expect(await isolateRejected(numbersUpTo(50), receiver.write, { isRejection })).toEqual(new Map());
    expect([receiver.written, receiver.calls()]).toEqual([numbersUpTo(50), 1]);
  });

  it('an empty batch is not written', async () => {
    const receiver = makeReceiver(new Set());
    expect(await isolateRejected([], receiver.write, { isRejection })).toEqual(new Map());
    expect(receiver.calls()).toBe(0);
  });

  it('every valid item is written once and in order, and every rejected item is returned with its error', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(200), fc.uniqueArray(fc.nat(200)), async (length, bad) => {
        const items = numbersUpTo(length);
        const receiver = makeReceiver(new Set(bad));
        const rejected = await isolateRejected(items, receiver.write, { isRejection });
        expect([...rejected]).toEqual(items.filter((item) => bad.includes(item)).map((item) => [item, rejection]));
        expect(receiver.written).toEqual(items.filter((item) => !bad.includes(item)));
      }),
    );
  });

  it('one rejected item among 1,024 costs 21 writes', async () => {
    const receiver = makeReceiver(new Set([700]));
    await isolateRejected(numbersUpTo(1_024), receiver.write, { isRejection });
    expect(receiver.calls()).toBe(21);
  });

  it('a batch with more rejected items than allowed fails soon with their error', async () => {
    const receiver = makeReceiver(new Set(numbersUpTo(2_500)));
    const all = isolateRejected(numbersUpTo(2_500), receiver.write, { isRejection, maxRejected: 16 });
    await expect(all).rejects.toBe(rejection);
    expect(receiver.calls()).toBeLessThan(60);
  });

  it('a batch with as many rejected items as allowed is written', async () => {
    const receiver = makeReceiver(new Set([3, 9]));
    const rejected = await isolateRejected(numbersUpTo(50), receiver.write, { isRejection, maxRejected: 2 });
    expect([rejected.size, receiver.written.length]).toEqual([2, 48]);
  });

  it('an error that the items did not cause is thrown at once', async () => {
    const lost = new Error('Connection terminated');
    let calls = 0;
    const fail = async (): Promise<void> => {
      calls += 1;
      throw lost;
    };
    await expect(isolateRejected(numbersUpTo(50), fail, { isRejection })).rejects.toBe(lost);
    expect(calls).toBe(1);
  });
});
