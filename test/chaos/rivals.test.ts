/** Two schedulers and two gateways at once on one tenant, under load. `npm run chaos` runs the long version. */
import { expect, it } from 'vitest';
import { rivalry } from './rivals.ts';

it('two schedulers at once fire every instant once and run every join once (I1–I5)', { timeout: 120_000 }, async () => {
  const { faults, runs, handedOutAgain } = await rivalry({ seed: 1, fans: 4, instants: 60 });
  expect(faults).toEqual([]);
  expect(runs).toBeGreaterThan(3_000);
  // unless leases were lost, this test has shown nothing
  expect(handedOutAgain).toBeGreaterThan(100);
});
