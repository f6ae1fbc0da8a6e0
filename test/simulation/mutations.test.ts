/** The invariants; `npm run chaos` breaks every other rule as well. */
import { promisify } from 'node:util';
import { vi } from 'vitest';
import { mutations } from './mutations.ts';
import { describeNoticed } from './noticed.ts';

vi.mock('node:timers/promises', async () => ({
  setTimeout: (await import('./clock.ts')).sleepOnClock,
  setImmediate: promisify(setImmediate),
}));

describeNoticed(mutations.filter(({ name }) => /^I\d/.test(name)));
