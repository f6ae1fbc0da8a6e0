/** Breaks the rules of the numbered invariants; `npm run chaos` breaks every other rule as well. */
import { vi } from 'vitest';
import { mutations } from './mutations.ts';
import { testMutations } from './mutation-suite.ts';

vi.mock('node:timers/promises', async () => (await import('./clock.ts')).timersOnClock);

testMutations(mutations.filter(({ name }) => /^I\d/.test(name)));
