/**
 * Seeded worlds in which everything goes wrong, judged by oracles (docs/internals.md, "Simulation"). One that fails says
 * how to see it again: `MILLRACE_SEED=7 npx vitest run test/simulation`, which also tells all that happened.
 * `MILLRACE_SEEDS=5000` looks at more of them.
 */
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Bench, makeBench } from './bench.ts';
import { simulate, type Verdict } from './simulate.ts';

vi.mock('node:timers/promises', async () => ({
  setTimeout: (await import('./clock.ts')).sleepOnClock,
  setImmediate: promisify(setImmediate),
}));

const only = process.env['MILLRACE_SEED'];
const count = Number(process.env['MILLRACE_SEEDS'] ?? 100);
/** Seeds of one test. */
const batch = 20;
const batchTimeoutMs = 400_000;

let bench: Bench;
beforeAll(async () => {
  bench = await makeBench();
});
afterAll(() => bench.close());

function expectNoFaults(seed: number, { faults, trace }: Verdict): void {
  if (faults.length === 0) return;
  const [first = ''] = faults;
  const step = /^step \d+/.exec(first)?.[0];
  const last = step === undefined ? trace.length : trace.findIndex((line) => line.endsWith(`(${step})`)) + 1;
  const before = trace.slice(Math.max(0, last - 40), last);
  const again = `MILLRACE_SEED=${seed} npx vitest run test/simulation/simulation.test.ts`;
  expect.fail([`seed ${seed}: ${faults.join('\n')}`, `to see it again: ${again}`, ...before].join('\n'));
}

function describeAll(): void {
  describe('however things go wrong, triggers, tokens, runs and limits keep their promises', () => {
    const starts = Array.from({ length: Math.ceil(count / batch) }, (_, i) => ({ first: i * batch + 1 }));
    it.each(starts)(
      `for the ${batch} seeds from $first on`,
      async ({ first }) => {
        for (let seed = first; seed < Math.min(first + batch, count + 1); seed++) {
          expectNoFaults(seed, await simulate(bench, seed));
        }
      },
      batchTimeoutMs,
    );

    it('and the same seed tells the same story again', async () => {
      for (const seed of [1, 2, 3]) {
        const [first, second] = [await simulate(bench, seed), await simulate(bench, seed)];
        expect(first.trace.length).toBeGreaterThan(50);
        expect(second.trace).toEqual(first.trace);
      }
    }, 60_000);
  });
}

function describeOne(seed: number): void {
  it(`the world of seed ${seed} keeps its promises`, async () => {
    const verdict = await simulate(bench, seed);
    process.stdout.write(`${verdict.trace.join('\n')}\n`);
    expectNoFaults(seed, verdict);
  }, 60_000);
}

// not skipped tests: whichever is not wanted is not there
if (only === undefined) describeAll();
else describeOne(Number(only));
