import { assert, constantFrom, property, string } from 'fast-check';
import { expect, test } from 'vitest';
import { meansNothing, onlyPlaceholder, scanPlaceholders } from './placeholders.ts';

/** The meaning of the scanner, as regular expressions. They take cubic time, so only short texts are compared. */
const meaning = /\{\{\{\{|\{\{\s*([^{}]*?)\s*\}\}/g;
const onlyMeaning = /^\{\{\s*([^{}]*?)\s*\}\}$/;

const braceText = string({
  unit: constantFrom('{', '{{', '}', '}}', ' ', '\n', '\u00a0', 'a', 'params.', '🦀'),
  maxLength: 14,
});

test('the scanner finds the same placeholders as the regular expression', () => {
  assert(
    property(braceText, (text) => {
      const expected = Array.from(text.matchAll(meaning), ({ 0: whole, 1: name, index: start }) => {
        return { name, start, end: start + whole.length };
      });
      expect([...scanPlaceholders(text)]).toEqual(expected);
      expect(onlyPlaceholder(text)).toBe(onlyMeaning.exec(text)?.[1]);
    }),
    { numRuns: 2_000 },
  );
});

test.each([
  ['blanks after open braces', (n: number) => `{{${' '.repeat(n)}`],
  ['blanks around every brace', (n: number) => '{{ '.repeat(n / 3)],
  ['nothing but open braces', (n: number) => '{'.repeat(n)],
  ['pairs that never close', (n: number) => '{{a}'.repeat(n / 4)],
])('a text of four million characters is scanned within seconds: %s', (_, make) => {
  // the regular expression needed minutes for a thousandth of this length
  const startedMs = performance.now();
  let found = 0;
  for (const { end } of scanPlaceholders(make(4_000_000))) found = end;
  expect(found).toBeLessThanOrEqual(4_000_000);
  expect(performance.now() - startedMs).toBeLessThan(5_000);
});

test('a message shows only the beginning of a long name', () => {
  expect(meansNothing('x'.repeat(1_000_000)).length).toBeLessThan(500);
});
