import { expect, test } from 'vitest';
import { instantText, parseInstant } from './instant-text.ts';

test('a time without an offset is UTC, and a date alone is its midnight', () => {
  expect(parseInstant(' 2026-01-31 ')).toBe('2026-01-31T00:00:00.000Z');
  expect(parseInstant('2026-01-31 7:05')).toBe('2026-01-31T07:05:00.000Z');
  expect(parseInstant('2026-01-31T07:05:09.25Z')).toBe('2026-01-31T07:05:09.250Z');
  expect(parseInstant('2026-01-31 07:05 utc')).toBe('2026-01-31T07:05:00.000Z');
});

test('an offset is accepted with or without its colon', () => {
  expect(parseInstant('2026-01-31 01:00+01:00')).toBe('2026-01-31T00:00:00.000Z');
  expect(parseInstant('2026-01-31 01:00 -0230')).toBe('2026-01-31T03:30:00.000Z');
});

test.each(['', 'yesterday', '2026-02-30', '2026-13-01', '2026-01-31 25:00', '31.1.2026', '2026-1-3'])(
  '“%s” is not a valid time',
  (text) => expect(parseInstant(text)).toBeUndefined(),
);

test('an instant written into a field is read back to the minute', () => {
  const ms = Date.parse('2026-07-09T12:34:56.789Z');
  expect(instantText(ms)).toBe('2026-07-09 12:34');
  expect(parseInstant(instantText(ms))).toBe('2026-07-09T12:34:00.000Z');
});
