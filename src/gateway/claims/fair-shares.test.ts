import { array, assert, integer, property } from 'fast-check';
import { expect, it } from 'vitest';
import { dealPlaces } from './fair-shares.ts';

it.each([
  [[8], 2, [[4], [4]]],
  [[7], 3, [[3], [2], [2]]],
  [[1], 3, [[1], [0], [0]]],
  [
    [1, 1, 1, 1],
    2,
    [
      [1, 0, 1, 0],
      [0, 1, 0, 1],
    ],
  ],
  [
    [3, 5],
    2,
    [
      [2, 2],
      [1, 3],
    ],
  ],
  [[8], 0, []],
])('places %j among %i are dealt as %j', (free, tenants, shares) => {
  expect(dealPlaces(free, tenants)).toEqual(shares);
});

it('every place is dealt once, and no two shares differ by more than one place', () => {
  const places = array(integer({ min: 0, max: 1_000 }), { maxLength: 20 });
  assert(
    property(places, integer({ min: 1, max: 20 }), (free, tenants) => {
      const shares = dealPlaces(free, tenants);
      const sums = shares.map((share) => share.reduce((sum, n) => sum + n, 0));
      expect(free.map((_, poll) => shares.reduce((sum, share) => sum + (share[poll] ?? 0), 0))).toEqual(free);
      expect(Math.max(...sums) - Math.min(...sums)).toBeLessThanOrEqual(1);
    }),
  );
});
