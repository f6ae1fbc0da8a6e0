import { expect, test } from 'vitest';
import { formatAge, formatBytes, formatDue, formatInstant, formatSpan } from './format.ts';

test('a span is as fine as it is short', () => {
  const spans = [-5, 0, 812, 4_250, 59_900, 65_000, 7_380_000, 273_600_000];
  expect(spans.map(formatSpan)).toEqual(['0ms', '0ms', '812ms', '4.2s', '59s', '1m 05s', '2h 03m', '3d 4h']);
});

test('an instant is shown in UTC, with seconds only where there are any', () => {
  expect(formatInstant('2026-01-31T01:00:00+01:00')).toBe('2026-01-31 00:00Z');
  expect(formatInstant('2026-01-31T00:00:07Z')).toBe('2026-01-31 00:00:07Z');
  expect(formatInstant('2026-01-31T00:00:07.250Z')).toBe('2026-01-31 00:00:07.250Z');
  expect(formatInstant('never')).toBe('never');
});

test('an age ends as a date', () => {
  const now = Date.parse('2026-03-31T00:00:00Z');
  expect(formatAge('2026-03-31T00:00:01Z', now)).toBe('just now');
  expect(formatAge('2026-03-30T23:57:00Z', now)).toBe('3m ago');
  expect(formatAge('2026-01-31T00:00:00Z', now)).toBe('2026-01-31');
});

test('a future time counts down', () => {
  const now = Date.parse('2026-03-31T00:00:00Z');
  const at = (seconds: number) => new Date(now + seconds * 1000).toISOString();
  expect([-1, 0.2, 59, 61, 7_300, 200_000].map((s) => formatDue(at(s), now))).toEqual([
    'now',
    'in 1s',
    'in 59s',
    'in 1m',
    'in 2h',
    'in 2d',
  ]);
});

test('bytes are as large as they are', () => {
  expect([0, 812, 4_210, 52_000_000, 9.96e12].map(formatBytes)).toEqual(['0 B', '812 B', '4.2 kB', '52 MB', '10.0 TB']);
});
