import { expect, it } from 'vitest';
import { formatAge } from './format-age.ts';

const nowMs = Date.parse('2030-01-31T12:00:00Z');

it.each([
  ['2030-01-31T11:59:18.400Z', '41s'],
  ['2030-01-31T12:00:05Z', '0s'],
  ['2030-01-31T11:29:00Z', '31m'],
  ['2030-01-31T07:00:00Z', '5h'],
  ['2030-01-31T06:48:00Z', '5h12m'],
  ['2030-01-19T11:00:00Z', '12d'],
])('the age of %s is %s', (at, age) => {
  expect(formatAge(at, nowMs)).toBe(age);
});

it('a time that is missing has no age', () => expect(formatAge(null, nowMs)).toBeNull());
