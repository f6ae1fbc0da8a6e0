import { expect, test } from 'vitest';
import { limitOf, outlookOf, partsOf, standInLine, stoppedBy } from './slots.ts';

const slot = (kind: 'launcher' | 'scheduler', tenant: string | null, position: number | null) => ({
  kind,
  tenant,
  position,
  holder: null,
  reason: 'runs',
  since: '2026-11-16T10:00:00Z',
});
const items = [
  slot('scheduler', 'late', 2),
  slot('launcher', null, null),
  slot('scheduler', 'a', null),
  slot('scheduler', 'first', 1),
];
const slots = { limit: 2, taken: 2, items };

test('who waits stands in the order of the line, and is not counted as a holder', () => {
  const { holders, line } = standInLine(items);
  expect(line.map(({ tenant }) => tenant)).toEqual(['first', 'late']);
  expect(partsOf(holders).map(({ name, count }) => `${count} ${name}`)).toEqual(['1 launcher', '1 schedulers']);
});

test('the preview of a limit names the schedulers that it starts or stops', () => {
  expect(outlookOf(slots, 3)).toBe('Starts 1 of those in line, in its order: first.');
  expect(outlookOf(slots, 40)).toBe('Starts 2 of those in line, in its order: first, late.');
  expect(outlookOf(slots, 1)).toMatch(/^Stops 1 scheduler, the newest: a\. Nothing of its tenant fires until /);
  expect(outlookOf({ ...slots, taken: 3 }, 2)).toBe('Nobody is stopped, but nobody gets a slot until fewer are held.');
  expect(outlookOf({ ...slots, items: [], taken: 1 }, 2)).toBe('1 slot will be free. Nobody is stopped.');
});

test('a lower limit stops the newest schedulers that hold a slot, never the launcher', () => {
  const newer = { ...slot('scheduler', 'b', null), since: '2026-11-16T10:00:00.5Z' };
  const held = { limit: 3, taken: 3, items: [...items, newer] };
  expect([4, 3, 2, 1, 0].map((limit) => stoppedBy(held, limit))).toEqual([[], [], ['b'], ['b', 'a'], ['b', 'a']]);
  const many = Array.from({ length: 12 }, (_, n) => slot('scheduler', `t${n}`, null));
  expect(outlookOf({ limit: 12, taken: 12, items: many }, 0)).toMatch(/^Stops 12 schedulers, .* t9 and 2 more\. /);
});

test('a limit is a whole number that the server takes', () => {
  expect(['0', '64', '10000'].map(limitOf)).toEqual([0, 64, 10_000]);
  expect(['', '-1', '1.5', '1e3', '10001', 'x'].map(limitOf)).toEqual(Array.from({ length: 6 }, () => undefined));
});
