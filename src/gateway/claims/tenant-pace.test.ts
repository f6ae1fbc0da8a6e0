import { expect, it } from 'vitest';
import { TenantPace } from './tenant-pace.ts';

it('failures that were under way together count as one: what is paused for is the next try', () => {
  const pace = new TenantPace();
  for (let i = 0; i < 10; i++) pace.failed('a', 0);
  expect([pace.mayAsk('a', 10), pace.mayAsk('a', 101)]).toEqual([false, true]);
  for (let at = 101, i = 0; i < 10; i++, at += 10_000) pace.failed('a', at);
  expect(pace.mayAsk('a', 90_101 + 4_999)).toBe(false);
});

it('is told of the first failure, and then once a minute', () => {
  const pace = new TenantPace();
  expect([0, 1_000, 59_000, 60_000].map((at) => pace.failed('a', at))).toEqual([true, false, false, true]);
});

it('nothing is kept of a tenant of which nothing was heard for a minute: it may be gone', () => {
  const pace = new TenantPace();
  pace.inTime('prompt', 0);
  pace.overdue('overdue', 0);
  pace.late('late', 0);
  pace.failed('failing', 0);
  pace.failed('failing', 30_000);
  pace.forgetOld(59_999);
  expect([pace.size, pace.isSlow('late'), pace.isSlow('overdue')]).toEqual([4, true, true]);
  pace.forgetOld(60_000);
  expect([pace.size, pace.isSlow('failing'), pace.isSlow('overdue')]).toEqual([1, true, false]);
  pace.forgetOld(90_000);
  expect(pace.size).toBe(0);
});
