import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { cutArray } from './cut-array.ts';

it('the complete elements of any beginning of an array remain', () => {
  const element = fc.dictionary(fc.string(), fc.jsonValue());
  fc.assert(
    fc.property(fc.array(element), fc.double({ min: 0, max: 1, noNaN: true }), (elements, share) => {
      const text = JSON.stringify(elements);
      const length = Math.round(text.length * share);
      const complete = elements.filter((_, i) => JSON.stringify(elements.slice(0, i + 1)).length - 1 <= length);
      expect(cutArray(text.slice(0, length))).toBe(JSON.stringify(complete));
    }),
  );
});
