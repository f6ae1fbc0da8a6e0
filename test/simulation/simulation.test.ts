/**
 * Seeded worlds in which everything goes wrong, judged by oracles (docs/internals.md, "Simulation"). A failure prints the
 * command that repeats it, such as `MILLRACE_SEED=7 npx vitest run test/simulation`, which also prints the whole trace.
 * `MILLRACE_SEEDS=5000` runs more seeds.
 */
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type Bench, makeBench } from './bench.ts';
import { simulate, type Verdict } from './simulate.ts';

vi.mock('node:timers/promises', async () => (await import('./clock.ts')).timersOnClock);

const only = process.env['MILLRACE_SEED'];
const count = Number(process.env['MILLRACE_SEEDS'] ?? 100);
/** Seeds per test. */
const seedsPerTest = 20;
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
  expect.fail([`seed ${seed}: ${faults.join('\n')}`, `to repeat: ${again}`, ...before].join('\n'));
}

function testAllSeeds(): void {
  const starts = Array.from({ length: Math.ceil(count / seedsPerTest) }, (_, i) => ({ first: i * seedsPerTest + 1 }));
  it.each(starts)(
    `triggers, tokens, runs and limits keep their promises in the ${seedsPerTest} worlds from seed $first on`,
    async ({ first }) => {
      for (let seed = first; seed < Math.min(first + seedsPerTest, count + 1); seed++) {
        expectNoFaults(seed, await simulate(bench, seed));
      }
    },
    batchTimeoutMs,
  );

  it('the same seed gives the same trace again', async () => {
    for (const seed of [1, 2, 3]) {
      const [first, second] = [await simulate(bench, seed), await simulate(bench, seed)];
      expect(first.trace.length).toBeGreaterThan(50);
      expect(second.trace).toEqual(first.trace);
    }
  }, 60_000);
}

function testOneSeed(seed: number): void {
  it(`the world of seed ${seed} keeps its promises`, async () => {
    const verdict = await simulate(bench, seed);
    process.stdout.write(`${verdict.trace.join('\n')}\n`);
    expectNoFaults(seed, verdict);
  }, 60_000);
}

// define only the wanted tests, because skipped tests fail in CI
if (only === undefined) testAllSeeds();
else testOneSeed(Number(only));
