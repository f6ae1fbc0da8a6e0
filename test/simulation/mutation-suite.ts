/** Tests the oracles themselves: with any one rule of the product broken, some world must show a fault. */
import { expect, it } from 'vitest';
import { makeBench } from './bench.ts';
import type { Mutation } from './mutations.ts';
import { simulate } from './simulate.ts';

/**
 * The first seeds contain rare events (a token with many times its threshold, a retry beside a count, a retry that is
 * cleared while it waits). The others follow in order.
 */
const seeds = [104, 49, 4, 27, 16, 8, 448, ...Array.from({ length: 400 }, (_, i) => i + 1)];
const timeoutMs = 400_000;

export function testMutations(mutations: readonly Mutation[]): void {
  it.each(mutations)(
    'the simulation detects the mutation $name',
    async ({ breakRule }) => {
      const bench = await makeBench(breakRule);
      try {
        for (const seed of seeds) if ((await simulate(bench, seed)).faults.length > 0) return;
        expect.fail(`no fault was found in ${seeds.length} worlds`);
      } finally {
        await bench.close();
      }
    },
    timeoutMs,
  );
}
