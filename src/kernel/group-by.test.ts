import { expect, it } from 'vitest';
import { groupBy } from './group-by.ts';

it('groups keep the order in which keys and items came', () => {
  const groups = groupBy(['b1', 'a1', 'b2', 'a2'], (item) => item[0]);
  expect([...groups]).toEqual([
    ['b', ['b1', 'b2']],
    ['a', ['a1', 'a2']],
  ]);
  expect(groupBy([], String).size).toBe(0);
});
