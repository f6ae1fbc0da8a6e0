import { expect, it } from 'vitest';
import type { Invalidation } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { CacheInvalidation } from './cache-invalidation.ts';

const change = (): Invalidation => ({ tenant: 'a', kind: 'task', id: newId() });

function setUp(): { invalidation: CacheInvalidation; dropped: (Invalidation | 'all')[] } {
  const dropped: (Invalidation | 'all')[] = [];
  return {
    invalidation: new CacheInvalidation({ drop: (one) => dropped.push(one), dropAll: () => dropped.push('all') }),
    dropped,
  };
}

it('an unknown gateway empties the cache once; later ones drop the listed objects', () => {
  const { invalidation, dropped } = setUp();
  const [one, two] = [change(), change()];
  invalidation.apply({ epoch: 'g', newest: 3, invalidate: [] });
  invalidation.apply({ epoch: 'g', newest: 3, invalidate: [] });
  invalidation.apply({ epoch: 'g', newest: 5, invalidate: [one, two] });
  expect([dropped, invalidation.seen]).toEqual([['all', one, two], { g: 5 }]);
});

it('an invalidation that two concurrent requests receive does not count as a gap', () => {
  const { invalidation, dropped } = setUp();
  const [one, two] = [change(), change()];
  invalidation.apply({ epoch: 'g', newest: 0, invalidate: [] });
  invalidation.apply({ epoch: 'g', newest: 2, invalidate: [one, two] });
  invalidation.apply({ epoch: 'g', newest: 1, invalidate: [one] });
  expect([dropped, invalidation.seen]).toEqual([['all', one, two, one], { g: 2 }]);
});

it('missing invalidations empty the cache', () => {
  const { invalidation, dropped } = setUp();
  invalidation.apply({ epoch: 'g', newest: 0, invalidate: [] });
  invalidation.apply({ epoch: 'g', newest: 2_000, invalidate: [change()] });
  expect([dropped, invalidation.seen]).toEqual([['all', 'all'], { g: 2_000 }]);
});

it('positions are kept for the 16 most recent gateways', () => {
  const { invalidation } = setUp();
  for (let i = 0; i < 100; i++) {
    invalidation.apply({ epoch: `g${i}`, newest: i, invalidate: [] });
    invalidation.apply({ epoch: 'steady', newest: 0, invalidate: [] });
  }
  expect(Object.keys(invalidation.seen)).toHaveLength(16);
  expect(invalidation.seen).toMatchObject({ g99: 99, steady: 0 });
});
