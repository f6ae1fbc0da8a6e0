import { expect, it } from 'vitest';
import { SubscriberMinutes } from './subscriber-minutes.ts';

const attempt = { subscriber: 'a', atMs: 60_500, isSuccess: true, latenciesMs: [10, 30] };

it('attempts of a subscriber within a minute are one count', () => {
  const minutes = new SubscriberMinutes();
  minutes.count(attempt);
  minutes.count({ ...attempt, atMs: 119_999, latenciesMs: [20] });
  minutes.count({ ...attempt, isSuccess: false });
  expect(minutes.take()).toEqual([{ subscriber: 'a', atMs: 60_000, events: 3, failed: 1, latencyMs: 60, worstMs: 30 }]);
});

it('another minute and another subscriber have counts of their own, and each is taken once', () => {
  const minutes = new SubscriberMinutes();
  for (const change of [{}, { atMs: 120_000 }, { subscriber: 'b' }]) minutes.count({ ...attempt, ...change });
  expect(minutes.take()).toHaveLength(3);
  expect(minutes.take()).toEqual([]);
});
