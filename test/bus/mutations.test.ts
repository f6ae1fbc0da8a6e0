/** Tests the oracle of the rivals itself: with any one rule of the bus broken, some world must show a fault. */
import { expect, it } from 'vitest';
import { mutations } from './mutations.ts';
import { runRivals } from './rivals.ts';

const seeds = Array.from({ length: 20 }, (_, i) => i + 1);
const timeoutMs = 120_000;

it.each(mutations)(
  'the rivals detect the mutation: $name',
  async ({ breakRule }) => {
    for (const seed of seeds) if ((await runRivals(seed, breakRule)).faults.length > 0) return;
    expect.fail(`no fault was found in ${seeds.length} worlds`);
  },
  timeoutMs,
);
