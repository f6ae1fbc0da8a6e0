import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { firstPlanned, passedTimes } from './recurring.ts';

type Spec = Parameters<typeof passedTimes>[0];

const startMs = Date.UTC(2026, 0, 1);
const compiled = { evaluate: () => null, reads: new Set<string>() };

function specOf(kind: 'every' | 'cron', missed: Spec['missed']): Spec {
  return kind === 'every'
    ? { kind, every: compiled, missed }
    : { kind, cron: '*/7 * * * *', timezone: 'Europe/Berlin', missed };
}

/** What is to be handled, by looking at one time after the other. */
function walk(spec: Spec, plannedMs: number, nowMs: number, periodMs: number): number[] {
  const times: number[] = [];
  for (let next: number | undefined = plannedMs; next !== undefined && next <= nowMs; ) {
    times.push(next);
    next = firstPlanned(spec, next, () => periodMs);
  }
  const missed = times.filter((time) => time < nowMs - 10_000);
  const onTime = times.filter((time) => time >= nowMs - 10_000);
  return spec.missed === 'skip' ? onTime : [...missed.slice(-1), ...onTime];
}

it('Of times that have passed, the newest missed one and those on time are handled.', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('every' as const, 'cron' as const),
      fc.constantFrom('one' as const, 'skip' as const),
      fc.integer({ min: 1_000, max: 90_000 }),
      fc.integer({ min: 0, max: 3 * 3_600_000 }),
      (kind, missed, periodMs, lateMs) => {
        const spec = specOf(kind, missed);
        const plannedMs = firstPlanned(spec, startMs, () => periodMs) ?? 0;
        const nowMs = plannedMs + lateMs;
        const { handled, nextMs = 0 } = passedTimes(spec, plannedMs, nowMs, () => periodMs);
        expect(handled).toEqual(walk(spec, plannedMs, nowMs, periodMs));
        expect(nextMs).toBeGreaterThan(nowMs);
      },
    ),
  );
});

it('A year of missed seconds takes a few steps.', () => {
  let steps = 0;
  const nowMs = startMs + 365 * 24 * 3_600_000;
  const period = (): number => {
    steps += 1;
    return 1_000;
  };
  const { handled } = passedTimes(specOf('every', 'one'), startMs, nowMs, period);
  expect(handled).toHaveLength(12);
  expect(steps).toBeLessThan(50);
});
