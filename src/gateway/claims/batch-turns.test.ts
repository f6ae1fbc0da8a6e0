import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BatchTurns } from './batch-turns.ts';

const many = 100;
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** Pieces of work that end on command, and the names of those that have begun. */
function setUp() {
  const turns = new BatchTurns();
  const begun: string[] = [];
  const ends = new Map<string, (runs: number) => void>();
  const work = (name: string) => (): Promise<number> => {
    begun.push(name);
    return new Promise((resolve) => ends.set(name, resolve));
  };
  /** Ends a piece of work. Returns once all consequences have happened, except those that wait for a timer. */
  const end = async (name: string, runs = many): Promise<void> => {
    ends.get(name)?.(runs);
    await vi.advanceTimersByTimeAsync(0);
  };
  const report = (tenant: string, name: string, runs = many) => void turns.report(tenant, runs, work(name));
  const claim = (tenantId: string, name: string, { laneSet = 'none', places = many } = {}) =>
    void turns.claim({ tenant: turns.tenants.of(tenantId), laneSet, places }, work(name), (runs) => runs);
  /** The last claim of this tenant gave many runs. */
  const flood = async (tenant: string): Promise<void> => {
    claim(tenant, 'flood');
    await end('flood');
    begun.pop();
  };
  /** Tenant b has had a run. */
  const another = async (): Promise<void> => {
    report('b', 'of another', 1);
    await end('of another');
    begun.pop();
  };
  /** Whether the turn of tenant a is taken. */
  const isTaken = (): boolean => turns.tenants.of('a').turn?.isTaken ?? false;
  return { turns, begun, end, flood, another, report, claim, isTaken };
}

it('a tenant that is alone works without turns, in batches of any size', async () => {
  const { turns, begun, flood, report, claim, isTaken } = setUp();
  await flood('a');
  report('a', 'one');
  report('a', 'two');
  claim('a', 'three');
  expect([begun, isTaken()]).toEqual([['one', 'two', 'three'], false]);
  expect(turns.maxBatch('a')).toBe(Number.POSITIVE_INFINITY);
});

it('large reports of a tenant take turns while others are at work; small reports and those of others do not wait', async () => {
  const { turns, begun, end, another, report } = setUp();
  await another();
  expect(turns.maxBatch('a')).toBe(250);
  for (const name of ['one', 'two', 'three']) report('a', name);
  report('a', 'small', 1);
  report('b', 'of b');
  expect(begun).toEqual(['one', 'small', 'of b']);
  await end('one');
  expect(begun.slice(3)).toEqual(['two']);
  await end('two');
  expect(begun.slice(3)).toEqual(['two', 'three']);
});

it('a large claim takes the turn, and a postponed claim is made once no report waits', async () => {
  const { turns, begun, end, flood, another, report, claim, isTaken } = setUp();
  let calls = 0;
  turns.onFree(() => {
    calls++;
    claim('a', 'claim');
  });
  await flood('a');
  await another();
  report('a', 'one');
  report('a', 'two');
  const { turn } = turns.tenants.of('a');
  if (turn !== undefined) turn.isWanted = true;
  await end('one');
  expect([begun, calls]).toEqual([['one', 'two'], 0]);
  await end('two');
  expect([begun.at(-1), calls, isTaken()]).toEqual(['claim', 1, true]);
  report('a', 'three');
  expect(begun).not.toContain('three');
  await end('claim', 1);
  expect(begun.at(-1)).toBe('three');
});

it('a claim for a few places takes no turn, and does not change the estimate of ready runs', async () => {
  const { turns, begun, end, flood, another, report, claim } = setUp();
  await flood('a');
  await another();
  report('a', 'one');
  claim('a', 'for few', { places: 8 });
  expect(begun).toEqual(['one', 'for few']);
  await end('for few', 8);
  expect(turns.tenants.of('a').isFlooded('none', performance.now())).toBe(true);
  claim('a', 'for many');
  await end('for many', 8);
  expect(turns.tenants.of('a').isFlooded('none', performance.now())).toBe(false);
});

it('a turn that no claim takes passes to the next report', async () => {
  const { turns, begun, end, flood, another, report, isTaken } = setUp();
  await flood('a');
  await another();
  report('a', 'one');
  let isFree = false;
  turns.onFree(() => (isFree = true));
  const { turn } = turns.tenants.of('a');
  if (turn !== undefined) turn.isWanted = true;
  await end('one');
  expect([isFree, isTaken()]).toEqual([true, false]);
  report('a', 'two');
  expect(begun).toEqual(['one', 'two']);
});

it('a turn is followed by a rest of the same length', async () => {
  const { begun, end, another, report } = setUp();
  await another();
  report('a', 'one');
  report('a', 'two');
  await vi.advanceTimersByTimeAsync(100);
  await end('one');
  await vi.advanceTimersByTimeAsync(99);
  expect(begun).toEqual(['one']);
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toEqual(['one', 'two']);
});

it('a report that has waited for a second ends the rest', async () => {
  const { begun, end, another, report } = setUp();
  await another();
  for (const name of ['one', 'two', 'three', 'four']) report('a', name);
  for (const name of ['one', 'two']) {
    await vi.advanceTimersByTimeAsync(400);
    await end(name);
    expect(begun.at(-1)).toBe(name);
    // a turn and its rest take half a second at most
    await vi.advanceTimersByTimeAsync(100);
  }
  await vi.advanceTimersByTimeAsync(400);
  await end('three');
  expect(begun).toEqual(['one', 'two', 'three', 'four']);
});

it('a failed turn is over, and a turn that does not end is abandoned after half a second', async () => {
  const { turns, begun, another, report } = setUp();
  await another();
  const failing = turns.report('a', many, () => Promise.reject(new Error('no')));
  report('a', 'one');
  report('a', 'two');
  await expect(failing).rejects.toThrow('no');
  await vi.advanceTimersByTimeAsync(0);
  expect(begun).toEqual(['one']);
  await vi.advanceTimersByTimeAsync(499);
  expect(begun).toEqual(['one']);
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toEqual(['one', 'two']);
});

it('a tenant without a run for five seconds, or whose reports fail, is not at work', async () => {
  const { turns, another } = setUp();
  await expect(turns.report('b', 1, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(turns.maxBatch('a')).toBe(Number.POSITIVE_INFINITY);
  await another();
  expect([turns.maxBatch('a'), turns.maxBatch('b')]).toEqual([250, Number.POSITIVE_INFINITY]);
  await vi.advanceTimersByTimeAsync(5_001);
  expect(turns.maxBatch('a')).toBe(Number.POSITIVE_INFINITY);
});
