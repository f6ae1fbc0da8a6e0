import { expect, it } from 'vitest';
import { Recent } from './recent.ts';

it('What was not used for the longest time is dropped once all together are too large.', () => {
  const recent = new Recent<string, number>(10);
  recent.keep('a', 1, 4);
  recent.keep('b', 2, 4);
  expect(recent.get('a')).toBe(1);
  recent.keep('c', 3, 4);
  expect(['a', 'b', 'c'].map((key) => recent.get(key))).toEqual([1, undefined, 3]);
});

it('One that is larger than all may be is kept alone, and a new value replaces an old one.', () => {
  const recent = new Recent<string, number>(10);
  recent.keep('a', 1, 4);
  recent.keep('b', 2, 100);
  expect([recent.get('a'), recent.get('b')]).toEqual([undefined, 2]);
  recent.keep('b', 3, 4);
  recent.keep('c', 4, 6);
  expect([recent.get('b'), recent.get('c')]).toEqual([3, 4]);
});
