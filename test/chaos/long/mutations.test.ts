/** Breaks every rule that is not a numbered invariant. */
import { vi } from 'vitest';
import { mutations } from '../../simulation/mutations.ts';
import { testMutations } from '../../simulation/mutation-suite.ts';

vi.mock('node:timers/promises', async () => (await import('../../simulation/clock.ts')).timersOnClock);

testMutations(mutations.filter(({ name }) => !/^I\d/.test(name)));
