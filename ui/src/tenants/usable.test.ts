import { expect, test } from 'vitest';
import { usable } from './usable.ts';

test('an upgrade goes to the newest engine that can be used, whichever release runs', () => {
  const engines = [
    { version: '3.0.0', fault: 'it is of contract 9', running: false },
    { version: '2.0.0', fault: null, running: false },
    { version: '1.0.0', fault: null, running: true },
  ];
  expect(usable(engines)[0]?.version).toBe('2.0.0');
  expect(usable(undefined)).toEqual([]);
});
