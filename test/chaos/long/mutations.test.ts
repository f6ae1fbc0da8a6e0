/** Every rule that is no numbered invariant, broken. */
import { vi } from 'vitest';
import { mutations } from '../../simulation/mutations.ts';
import { describeNoticed } from '../../simulation/noticed.ts';

vi.mock('node:timers/promises', async () => ({ setTimeout: (await import('../../simulation/clock.ts')).sleepOnClock }));

describeNoticed(mutations.filter(({ name }) => !/^I\d/.test(name)));
