/** Ten rounds of every blow during 20,000 runs. */
import { expect, it } from 'vitest';
import { storm } from '../storm.ts';
import { seed } from './seed.ts';

it(`after a long storm every join has run once (I1–I4), CHAOS_SEED=${seed}`, async () => {
  const startedAt = performance.now();
  const { faults, runs, handedOutAgain, blows } = await storm({ seed, rounds: 10, runs: 20_000, leaseMs: 3_000 });
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  console.log(`${runs} runs and ${blows.length} blows in ${seconds} s; ${handedOutAgain} hand-outs were lost`);
  expect(faults).toEqual([]);
  expect(runs).toBeGreaterThanOrEqual(20_000);
  expect(handedOutAgain).toBeGreaterThan(10);
});
