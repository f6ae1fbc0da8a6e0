import { expect, test } from 'vitest';
import { hasNewer, usable, usualTarget } from './usable.ts';

const engines = [
  { version: '3.0.0', fault: 'it is of contract 9', running: false },
  { version: '2.1.0-beta.1', fault: null, running: false },
  { version: '2.0.0', fault: null, running: false },
  { version: '1.0.0', fault: null, running: true },
];

test('an upgrade can go to what can be used, and goes to the newest stable one, whichever release runs', () => {
  expect(usable(engines).map(({ version }) => version)).toEqual(['2.1.0-beta.1', '2.0.0', '1.0.0']);
  expect(usualTarget('1.0.0', engines)).toBe('2.0.0');
  expect(usualTarget('2.0.0-rc.1', engines)).toBe('2.1.0-beta.1');
  expect(usualTarget('1.0.0+build-7', engines)).toBe('2.0.0');
  expect(usualTarget('1.0.0', engines.slice(0, 2))).toBe('2.1.0-beta.1');
  expect(usualTarget('1.0.0', undefined)).toBeUndefined();
});

test('there is something to upgrade to where a usable engine is newer', () => {
  expect(hasNewer('1.0.0', engines)).toBe(true);
  expect(hasNewer('2.0.0', engines)).toBe(true);
  expect(hasNewer('2.1.0-beta.1', engines)).toBe(false);
  // its own engine is not installed
  expect(hasNewer('1.5.0', engines)).toBe(true);
  expect(hasNewer(null, engines)).toBe(false);
  expect(hasNewer('1.0.0', undefined)).toBe(false);
});
