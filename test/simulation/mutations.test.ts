/** The oracles find what they are there to find: with any one rule of the product broken, some world must go wrong. */
import { describe, expect, it, vi } from 'vitest';
import { makeBench } from './bench.ts';
import { mutations } from './mutations.ts';
import { simulate } from './simulate.ts';

vi.mock('node:timers/promises', async () => ({ setTimeout: (await import('./clock.ts')).sleepOnClock }));

const mostSeeds = 80;
const timeoutMs = 400_000;

describe('the simulation notices that', () => {
  it.each(mutations)(
    '$name',
    async ({ breakRule }) => {
      const bench = await makeBench(breakRule);
      try {
        for (let seed = 1; seed <= mostSeeds; seed++) if ((await simulate(bench, seed)).faults.length > 0) return;
        expect.fail(`nothing went wrong in ${mostSeeds} worlds`);
      } finally {
        await bench.close();
      }
    },
    timeoutMs,
  );
});
