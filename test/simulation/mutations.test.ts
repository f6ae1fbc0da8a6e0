/** The invariants; `npm run chaos` breaks every other rule as well. */
import { vi } from 'vitest';
import { mutations } from './mutations.ts';
import { describeNoticed } from './noticed.ts';

vi.mock('node:timers/promises', async () => ({ setTimeout: (await import('./clock.ts')).sleepOnClock }));

describeNoticed(mutations.filter(({ name }) => /^I\d/.test(name)));
