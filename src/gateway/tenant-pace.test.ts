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
