import { expect, test } from 'vitest';
import { adviceOf } from './advice.ts';

const shown = (next: string) => adviceOf(next).map(({ kind, text }) => (kind === 'command' ? `[${text}]` : text));

test('adviceOf separates commands from the words around them', () => {
  expect(shown('start one: millrace worker --queue gpu')).toEqual(['Start one: ', '[millrace worker --queue gpu]']);
  expect(shown('millrace activate shop/a b 2026-01-01T00:00:00Z runs it again')).toEqual([
    '[millrace activate shop/a b 2026-01-01T00:00:00Z]',
    ' runs it again.',
  ]);
  expect(shown('millrace status says why; millrace host starts one')).toEqual([
    '[millrace status]',
    ' says why; ',
    '[millrace host]',
    ' starts one.',
  ]);
  expect(shown('it starts when a place is free')).toEqual(['It starts when a place is free.']);
});

test('a command in backticks ends at the closing backtick', () => {
  expect(shown('`millrace slots` shows who has them; `millrace slots --limit 65` makes room')).toEqual([
    '[millrace slots]',
    ' shows who has them; ',
    '[millrace slots --limit 65]',
    ' makes room.',
  ]);
  expect(shown('restore it, or `millrace tenant drop acme`')).toEqual([
    'Restore it, or ',
    '[millrace tenant drop acme]',
  ]);
});
