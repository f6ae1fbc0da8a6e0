import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { BatchTurns } from './batch-turns.ts';

const many = 100;

/** Work that ends when it is told to, and a word for each time that something began. */
function setUp() {
  const turns = new BatchTurns();
  const begun: string[] = [];
  const ends = new Map<string, (runs: number) => void>();
  const work = (name: string) => (): Promise<number> => {
    begun.push(name);
    return new Promise((resolve) => ends.set(name, resolve));
  };
  /** Returns when whoever waits for its answer has it. */
  const end = async (name: string, runs = many): Promise<void> => {
    ends.get(name)?.(runs);
    await new Promise(setImmediate);
  };
  const report = (tenant: string, name: string, runs = many) => void turns.report(tenant, runs, work(name));
  const claim = (tenant: string, name: string, { lanes = 'none', places = many } = {}) =>
    void turns.claim({ tenant, lanes, places }, work(name), (runs) => runs);
  /** The last claim of this tenant was a large one. */
  const flood = async (tenant: string): Promise<void> => {
    claim(tenant, 'flood');
    await end('flood');
    begun.pop();
  };
  /** Somebody else has a run. */
  const another = async (): Promise<void> => {
    report('b', 'of another', 1);
    await end('of another');
    begun.pop();
  };
  return { turns, begun, end, flood, another, report, claim };
}

const patience = { timeout: 10_000, interval: 5 };
const began = (begun: readonly string[], name: string) => vi.waitFor(() => expect(begun).toContain(name), patience);

it('a tenant by itself does all at once, in batches of any size', async () => {
  const { turns, begun, flood, report, claim } = setUp();
  await flood('a');
  report('a', 'one');
  report('a', 'two');
  expect(turns.mustWait('a', 'none', many)).toBe(false);
  claim('a', 'three');
  expect(begun).toEqual(['one', 'two', 'three']);
  expect(turns.largestOf('a')).toBe(Number.POSITIVE_INFINITY);
});

it('beside others its large batches take turns, and are smaller; theirs and small ones do not wait', async () => {
  const { turns, begun, end, another, report } = setUp();
  await another();
  expect(turns.largestOf('a')).toBe(250);
  report('a', 'one');
  report('a', 'two');
  report('a', 'three');
  report('a', 'a small one', 1);
  report('b', 'a large one of another');
  expect(begun).toEqual(['one', 'a small one', 'a large one of another']);
  await end('one');
  await began(begun, 'two');
  expect(begun).not.toContain('three');
  await end('two');
  await began(begun, 'three');
});

it('a claim waits after a large one for the same lanes, and whoever makes it is called when reports have had their turns', async () => {
  const { turns, begun, end, flood, another, report, claim } = setUp();
  let calls = 0;
  turns.onFree(() => {
    calls++;
    expect(turns.mustWait('a', 'none', many)).toBe(false);
    claim('a', 'claim');
  });
  await flood('a');
  await another();
  expect(turns.mustWait('a', 'none', many)).toBe(false);
  report('a', 'one');
  report('a', 'two');
  expect(turns.mustWait('a', 'process', many)).toBe(false);
  expect(turns.mustWait('a', 'none', 8)).toBe(false);
  expect(turns.mustWait('a', 'none', many)).toBe(true);
  await end('one');
  await began(begun, 'two');
  expect(calls).toBe(0);
  await end('two');
  await began(begun, 'claim');
  expect(turns.mustWait('a', 'none', many)).toBe(true);
  report('a', 'three');
  await end('claim', 1);
  await began(begun, 'three');
  // it was a small one
  expect(turns.mustWait('a', 'none', many)).toBe(false);
  expect(calls).toBe(1);
});

it('a claim for a few places neither waits nor says that there are few runs', async () => {
  const { turns, begun, end, flood, another, report, claim } = setUp();
  await flood('a');
  await another();
  report('a', 'one');
  claim('a', 'for few', { places: 8 });
  expect(begun).toEqual(['one', 'for few']);
  await end('for few', 8);
  expect(turns.mustWait('a', 'none', many)).toBe(true);
});

it('a turn that nobody takes goes to the next report', async () => {
  const { turns, begun, end, flood, another, report } = setUp();
  await flood('a');
  await another();
  report('a', 'one');
  expect(turns.mustWait('a', 'none', many)).toBe(true);
  let isFree = false;
  turns.onFree(() => (isFree = true));
  await end('one');
  await vi.waitFor(() => expect(isFree).toBe(true), patience);
  report('a', 'two');
  expect(begun).toEqual(['one', 'two']);
});

it('a turn is followed by a rest that is as long', async () => {
  const { begun, end, another, report } = setUp();
  await another();
  report('a', 'one');
  report('a', 'two');
  const startedMs = performance.now();
  await sleep(100);
  await end('one');
  await began(begun, 'two');
  expect(performance.now() - startedMs).toBeGreaterThan(195);
});

it('a turn that fails is over, and one that does not end is waited for no longer than half a second', async () => {
  const { turns, begun, another, report } = setUp();
  await another();
  const failing = turns.report('a', many, () => Promise.reject(new Error('no')));
  report('a', 'one');
  await expect(failing).rejects.toThrow('no');
  await began(begun, 'one');
  const startedMs = performance.now();
  report('a', 'two');
  await began(begun, 'two');
  expect(performance.now() - startedMs).toBeGreaterThan(450);
});

it('who had nothing for a while is taken for a small one again: it may be gone', async () => {
  const { turns, end, flood, another, claim } = setUp();
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    await flood('a');
    await another();
    claim('a', 'one');
    expect(turns.mustWait('a', 'none', many)).toBe(true);
    vi.advanceTimersByTime(5_001);
    await another();
    expect(turns.mustWait('a', 'none', many)).toBe(false);
    await end('one');
  } finally {
    vi.useRealTimers();
  }
});

it('who had nothing for a while is not at work, nor is one whose reports fail', async () => {
  const { turns, another } = setUp();
  await expect(turns.report('b', 1, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(turns.largestOf('a')).toBe(Number.POSITIVE_INFINITY);
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    await another();
    expect(turns.largestOf('a')).toBe(250);
    expect(turns.largestOf('b')).toBe(Number.POSITIVE_INFINITY);
    vi.advanceTimersByTime(5_001);
    expect(turns.largestOf('a')).toBe(Number.POSITIVE_INFINITY);
  } finally {
    vi.useRealTimers();
  }
});
