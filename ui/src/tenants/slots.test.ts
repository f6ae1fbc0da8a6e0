import { expect, test } from 'vitest';
import { limitOf, outlookOf, partsOf, standInLine } from './slots.ts';

const slot = (kind: 'launcher' | 'scheduler' | 'housekeeping', tenant: string | null, position: number | null) => ({
  kind,
  tenant,
  position,
  holder: null,
  reason: 'runs',
  lent: false,
  since: '2026-11-16T10:00:00Z',
});
const items = [
  slot('scheduler', 'late', 2),
  slot('launcher', null, null),
  slot('scheduler', 'a', null),
  slot('housekeeping', 'a', null),
  slot('scheduler', 'first', 1),
  { ...slot('housekeeping', 'b', null), lent: true },
];
const slots = { limit: 3, taken: 3, items };

test('who waits stands in the order of the line, and is not counted as a holder', () => {
  const { holders, line } = standInLine(items);
  expect(line.map(({ tenant }) => tenant)).toEqual(['first', 'late']);
  expect(partsOf(holders).map(({ name, count }) => `${count} ${name}`)).toEqual([
    '1 launcher',
    '1 schedulers',
    '1 housekeeping',
  ]);
});

test('another limit says whom it serves, or sends back', () => {
  expect(outlookOf(slots, 4)).toBe('The first 1 in line is served at once.');
  expect(outlookOf(slots, 40)).toBe('The first 2 in line are served at once.');
  expect(outlookOf(slots, 2)).toMatch(/^3 slots are held: .* until 2 are held\.$/);
  expect(outlookOf({ ...slots, items: [], taken: 1 }, 2)).toBe('1 slot will be free. Nobody is stopped.');
});

test('a limit is a whole number that the server takes', () => {
  expect(['0', '64', '10000'].map(limitOf)).toEqual([0, 64, 10_000]);
  expect(['', '-1', '1.5', '1e3', '10001', 'x'].map(limitOf)).toEqual(Array.from({ length: 6 }, () => undefined));
});
