import { expect, it } from 'vitest';
import { splitInto } from './split-into.ts';

it('splitInto keeps the order, fills each piece, and makes no empty piece', () => {
  expect(splitInto(2, [1, 2, 3, 4, 5])).toEqual([[1, 2], [3, 4], [5]]);
  expect(splitInto(2, [1, 2])).toEqual([[1, 2]]);
  expect(splitInto(2, [])).toEqual([]);
});
