/** Tests the oracles themselves: with any one rule of the product broken, some world must show a fault. */
import { expect, it, vi } from 'vitest';
import { makeBench } from './bench.ts';
import { mutations } from './mutations.ts';
import { simulate } from './simulate.ts';

vi.mock('node:timers/promises', async () => (await import('./clock.ts')).timersOnClock);

/** These worlds detect all mutations. If a change of the product or of the simulation alters them, the others follow in order. */
const telling = [104, 49, 5, 16, 27, 9, 14, 20, 32, 38, 57, 223, 448];
const seeds = [...telling, ...Array.from({ length: 400 }, (_, i) => i + 1)];
const timeoutMs = 400_000;

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
