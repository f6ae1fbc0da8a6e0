/** Two schedulers and two gateways at once, for minutes. */
import { expect, it } from 'vitest';
import { rivalry } from '../rivals.ts';
import { seed } from './seed.ts';

it(`two schedulers at once never do anything twice (I1–I5), CHAOS_SEED=${seed}`, async () => {
  const { faults, runs, handedOutAgain } = await rivalry({ seed, fans: 8, instants: 400 });
  console.log(`${runs} runs; ${handedOutAgain} hand-outs were lost`);
  expect(faults).toEqual([]);
  expect(handedOutAgain).toBeGreaterThan(1_000);
});
