import { expect, test } from 'vitest';
import { hunksOf, rowsOf } from './hunks.ts';
import { diffLines } from './line-diff.ts';

const numbers = (count: number) => Array.from({ length: count }, (_, i) => `line ${i}`);

test('lines far from any change are left out, and counted', () => {
  const before = numbers(40).join('\n');
  const after = before.replace('line 10\n', 'LINE 10\n').replace('line 30\n', '');
  const hunks = hunksOf(diffLines(before, after));
  expect(hunks.map(({ skipped, lines }) => [skipped, lines.length])).toEqual([
    [7, 8],
    [13, 7],
    [6, 0],
  ]);
});

test('side by side, a change stands beside what it replaced', () => {
  const rows = rowsOf(diffLines('a\nb\nc\n', 'a\nB\nBB\nc\n'));
  expect(rows.map(({ left, right }) => [left?.text, right?.text])).toEqual([
    ['a', 'a'],
    ['b', 'B'],
    [undefined, 'BB'],
    ['c', 'c'],
  ]);
});
