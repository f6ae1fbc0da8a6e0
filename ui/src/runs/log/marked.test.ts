import { expect, test } from 'vitest';
import { plain } from './ansi.ts';
import { patternOf } from './log-search.ts';
import { marked } from './marked.ts';

const red = { ink: 1 };

test('hits are marked within pieces and across them', () => {
  const pieces = [
    { text: 'an err', style: plain },
    { text: 'or, one', style: red },
    { text: ' error', style: plain },
  ];
  expect(marked(pieces, patternOf('ERROR')).map(({ text, hit }) => [text, hit])).toEqual([
    ['an ', undefined],
    ['err', 0],
    ['or', 0],
    [', one', undefined],
    [' ', undefined],
    ['error', 1],
  ]);
  expect(marked(pieces, patternOf('none'))).toBe(pieces);
  expect(marked(pieces, undefined)).toBe(pieces);
});
