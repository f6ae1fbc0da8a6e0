import { expect, it } from 'vitest';
import { burstAims, type Measured } from './burst.ts';
import { percentiles } from './percentiles.ts';

const measured: Measured = {
  burst: { tasks: 1_000, fired: percentiles([5]), started: percentiles([20, 150]), steadyRate: 10_000 },
  fan: { own: percentiles([15, 15, 90]), commit: percentiles([1, 1, 3]) },
  triggers: { own: percentiles([4, 10]), commit: percentiles([1, 1, 2]) },
};

it('The aims of burst are ratios to the steady rate and to a bare commit of the same run, and their bounds count as met', () => {
  expect(burstAims(measured)).toEqual([
    {
      what: '1,000 tasks that have never run, all started, against the steady rate',
      aim: '≤ 1.5 ×',
      measured: '1.5 ×',
      met: true,
    },
    { what: 'one fan-out 1 → 10 → 1, p50, against a bare commit', aim: '≤ 15 ×', measured: '15 ×', met: true },
    { what: 'a trigger to its run started, p99, against a bare commit', aim: '≤ 5 ×', measured: '5 ×', met: true },
  ]);
});

it('A burst whose last task starts late misses the aim, however early the others start', () => {
  const late = { ...measured.burst, started: percentiles([...Array.from({ length: 999 }, () => 20), 151]) };
  expect(burstAims({ ...measured, burst: late }).map(({ met }) => met)).toEqual([false, true, true]);
});
