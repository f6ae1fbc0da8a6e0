import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type DiffLine, diffLines } from './line-diff.ts';

const signs = { same: ' ', removed: '-', added: '+' } as const;
const shown = (diff: readonly DiffLine[]) => diff.map(({ kind, text }) => `${signs[kind]}${text}`);

test('shows what was removed and added, in place', () => {
  expect(shown(diffLines('a\nb\nc\nd\n', 'a\nB\nc\nnew\nd\n'))).toEqual([' a', '-b', '+B', ' c', '+new', ' d']);
  expect(shown(diffLines('', 'x\n'))).toEqual(['+x']);
  expect(diffLines('', '')).toEqual([]);
});

test('both texts can be put together again from it, with the right line numbers', () => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c', 'd', '', 'e e'), { maxLength: 40 });
  fc.assert(
    fc.property(text, text, (before, after) => {
      const end = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join('');
      const diff = diffLines(end(before), end(after));
      const left = diff.filter(({ kind }) => kind !== 'added');
      const right = diff.filter(({ kind }) => kind !== 'removed');
      expect(left.map((line) => line.text)).toEqual(before);
      expect(right.map((line) => line.text)).toEqual(after);
      expect(left.map((line) => line.before)).toEqual(before.map((_, i) => i + 1));
      expect(right.map((line) => line.after)).toEqual(after.map((_, i) => i + 1));
    }),
  );
});

test('lines without a neighbour that occurs once are still compared in full', () => {
  const diff = diffLines('x\nx\ny\ny\nz\nz\n', 'x\nx\nz\nz\n');
  expect(shown(diff)).toEqual([' x', ' x', '-y', '-y', ' z', ' z']);
});

test('five thousand lines that have all moved or changed take no time to speak of', () => {
  const lines = Array.from({ length: 5_000 }, (_, i) =>
    i % 3 === 0 ? '  - name: task' : `line ${(i * 7919) % 5_000}`,
  );
  const others = lines.map((line, i) => (i % 5 === 0 ? `${line} changed` : line)).toReversed();
  const startedAt = performance.now();
  const diff = diffLines(lines.join('\n'), others.join('\n'));
  expect(performance.now() - startedAt).toBeLessThan(1_500);
  expect(diff.filter(({ kind }) => kind !== 'added')).toHaveLength(5_000);
});
