/** The oracles find what they are there to find: with any one rule of the product broken, some world must go wrong. */
import { describe, expect, it } from 'vitest';
import { makeBench } from './bench.ts';
import type { Mutation } from './mutations.ts';
import { simulate } from './simulate.ts';

/**
 * Worlds in which what seldom happens does (a token with many times its threshold, a retry beside a count, one that is
 * cleared while it waits), then others.
 */
const seeds = [104, 49, 4, 27, 16, 8, 448, ...Array.from({ length: 400 }, (_, i) => i + 1)];
const timeoutMs = 400_000;

export function describeNoticed(mutations: readonly Mutation[]): void {
  describe('the simulation notices that', () => {
    it.each(mutations)(
      '$name',
      async ({ breakRule }) => {
        const bench = await makeBench(breakRule);
        try {
          for (const seed of seeds) if ((await simulate(bench, seed)).faults.length > 0) return;
          expect.fail(`nothing went wrong in ${seeds.length} worlds`);
        } finally {
          await bench.close();
        }
      },
      timeoutMs,
    );
  });
}
