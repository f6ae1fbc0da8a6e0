import { expect, it } from 'vitest';
import { maxClaimBytes } from '../../contract/engine.ts';
import type { ClaimedRun } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { nameOf, Pollers, type WaitingPoll } from './pollers.ts';

function runWith(params: Record<string, unknown> = {}): ClaimedRun {
  const ids = { tenant: newId(), run: newId(), task: newId(), lease: 1, version: 1, attempt: 1 };
  const texts = { tenant_name: 't', engine: 'e', instant: '2030-01-31T00:00:00Z', credential: '' };
  return { ...ids, ...texts, priority: 'normal', params };
}

interface TestPoll extends WaitingPoll {
  /** The runs that the poll ended with; undefined while it waits. */
  readonly ended: () => readonly ClaimedRun[] | undefined;
}

function makePoll(pollers: Pollers, more: Partial<WaitingPoll> = {}): TestPoll {
  let ended: readonly ClaimedRun[] | undefined;
  const poller = { worker: 'w', incarnation: 1, laneSet: 'none', ...more };
  const poll: TestPoll = {
    ...poller,
    name: nameOf(poller),
    free: more.free ?? 1,
    lanes: [],
    takes: () => true,
    ended: () => ended,
    end: (runs) => {
      pollers.remove(poll);
      ended = runs;
    },
  };
  return poll;
}

function add(pollers: Pollers, more: Partial<WaitingPoll> = {}): TestPoll {
  const poll = makePoll(pollers, more);
  pollers.add(poll);
  return poll;
}
const freePlaces = (pollers: Pollers): number[] => [...pollers.free().values()].flat().map(({ places }) => places);

it('the free places of a poll exclude those that are kept for claims under way', () => {
  const pollers = new Pollers();
  const poll = add(pollers, { free: 5 });
  pollers.keep([{ poll, places: 3 }]);
  expect(freePlaces(pollers)).toEqual([2]);
  poll.end([]);
  const next = add(pollers, { free: 4 });
  expect(freePlaces(pollers)).toEqual([1]);
  pollers.release([{ poll, places: 3 }]);
  expect([freePlaces(pollers), next.ended(), pollers.waiting]).toEqual([[4], undefined, 1]);
});

it('a poll ends an older poll of the same worker and lanes', () => {
  const pollers = new Pollers();
  const [older, other, newer] = [add(pollers), add(pollers, { laneSet: 'process' }), add(pollers)];
  expect([older.ended(), other.ended(), newer.ended(), pollers.waiting]).toEqual([[], undefined, undefined, 2]);
});

it.each([
  [[1, 2], [2]],
  [[2, 1], [2]],
  [
    [1, 1],
    [1, 1],
  ],
])('among polls of the incarnations %j, only those of %j have free places', (incarnations, served) => {
  const pollers = new Pollers();
  incarnations.forEach((incarnation, i) => add(pollers, { incarnation, laneSet: `${i}` }));
  expect([...pollers.free().values()].flat().map(({ poll }) => poll.incarnation)).toEqual(served);
});

it('runs for a poll that has ended go to the next poll of the same worker and lanes, at once', () => {
  const pollers = new Pollers();
  const poll = add(pollers);
  poll.end([]);
  const [first, second] = [runWith(), runWith()];
  pollers.give(poll, [first], 0);
  const other = add(pollers, { laneSet: 'process' });
  const next = makePoll(pollers);
  expect([pollers.add(next), next.ended(), other.ended()]).toEqual([false, [first], undefined]);
  const waiting = add(pollers);
  pollers.give(poll, [second], 0);
  expect(waiting.ended()).toEqual([second]);
});

it('a poll gets as many left-over runs as it has places, and the rest occupies places of later polls', () => {
  const pollers = new Pollers();
  const poll = makePoll(pollers);
  pollers.give(poll, [runWith(), runWith(), runWith()], 0);
  expect(add(pollers, { free: 2 }).ended()).toHaveLength(2);
  const waiting = add(pollers, { free: 0 });
  expect([waiting.ended(), freePlaces(pollers)]).toEqual([undefined, []]);
  expect(add(pollers, { free: 2 }).ended()).toHaveLength(1);
});

it('an answer has no more bytes of params than a claim, but at least one run', () => {
  const pollers = new Pollers();
  const quarter = { x: 'x'.repeat(maxClaimBytes / 4) };
  const runs = [...Array.from({ length: 6 }, () => runWith(quarter)), runWith({ x: 'x'.repeat(maxClaimBytes) })];
  pollers.give(makePoll(pollers), runs, 0);
  expect([1, 2, 3].map(() => add(pollers, { free: 100 }).ended()?.length)).toEqual([3, 3, 1]);
});

it('left-over runs that no poll has fetched are taken back by age', () => {
  const pollers = new Pollers();
  const [old, newer] = [runWith(), runWith()];
  pollers.give(makePoll(pollers), [old], 0);
  pollers.give(makePoll(pollers), [newer], 10);
  expect([pollers.takeLeftBefore(10), pollers.takeLeftBefore(11), pollers.takeLeftBefore(99)]).toEqual([
    [old],
    [newer],
    [],
  ]);
});
