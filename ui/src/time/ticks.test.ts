import { expect, test } from 'vitest';
import { stepFor, ticksFor } from './ticks.ts';

test('steps are round and no more than asked for', () => {
  expect([3, 900, 4_200, 70_000, 4_000_000].map((span) => stepFor(span, 5))).toEqual([1, 200, 1_000, 15_000, 900_000]);
  expect(stepFor(10 * 365 * 24 * 3_600_000, 5) % (480 * 3_600_000)).toBe(0);
});

test('ticks go from nothing to beyond the span', () => {
  expect(ticksFor(4_200, 5)).toEqual([0, 1_000, 2_000, 3_000, 4_000, 5_000]);
  expect(ticksFor(0, 5)).toEqual([0]);
});
