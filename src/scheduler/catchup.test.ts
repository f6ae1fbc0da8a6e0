import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSchedule, instantsBetween, nextInstant, type ScheduleSpec } from '../jobs/schedule.ts';
import { arrive } from './arrival.ts';
import { pieceInstantsOf, piecesOf } from './catchup.ts';
import type { CatchupRow, TriggerRow } from './queries.ts';

const noon = Date.UTC(2026, 5, 1);
const minute = 60_000;
const specs: fc.Arbitrary<ScheduleSpec> = fc
  .oneof(
    fc.integer({ min: 300_000, max: 3 * 86_400_000 }).map((periodMs) => ({ periodMs, cron: null })),
    fc.constantFrom('*/7 * * * *', '0 3 * * *', '0 0 1 * *', '0 0 29 2 *').map((cron) => ({ periodMs: null, cron })),
  )
  .map((when) => ({ ...when, startMs: noon - 90 * 86_400_000, endMs: null, timezone: null }));

describe('the pieces of a catch-up', () => {
  it('together hold every instant of the range once, in the order of the policy over the whole', () => {
    const range = fc.tuple(fc.integer({ min: 0, max: 60 * 24 * 60 }), fc.integer({ min: 1, max: 20 * 24 * 60 }));
    const policies = fc.constantFrom('earliest' as const, 'latest' as const, 'random' as const);
    fc.assert(
      fc.property(specs, range, policies, fc.nat(2 ** 30 - 1), (spec, [from, length], policy, seed) => {
        const schedule = compileSchedule(spec);
        const fromMs = spec.startMs + from * minute;
        const toMs = fromMs + length * minute;
        const all = [...instantsBetween(schedule, fromMs, toMs)];
        fc.pre(all.length < 20_000);
        const pieces = piecesOf(schedule, fromMs, toMs);
        const row: CatchupRow = {
          trigger_id: '',
          from_at: new Date(fromMs),
          to_at: new Date(toMs),
          policy,
          next_piece: 0,
          pieces,
          seed,
        };
        const seen: number[] = [];
        let largest = 0;
        for (let next = 0; next < pieces; next++) {
          const piece = pieceInstantsOf({ ...row, next_piece: next }, schedule);
          largest = Math.max(largest, piece.length);
          for (const instant of piece) seen.push(instant);
        }
        if (policy === 'latest') expect(seen).toEqual(all.toReversed());
        else expect(policy === 'earliest' ? seen : seen.toSorted((a, b) => a - b)).toEqual(all);
        expect(largest).toBeLessThanOrEqual(2_000);
      }),
      { numRuns: 60 },
    );
  });
});

describe('what happens when a trigger enters the queue', () => {
  const rowOf = (spec: ScheduleSpec, more: Partial<TriggerRow>): TriggerRow => ({
    id: 't',
    job_id: 'j',
    start_at: new Date(spec.startMs),
    end_at: null,
    period_ms: spec.periodMs,
    cron: spec.cron,
    timezone: null,
    offset_ms: 0,
    catchup: 'earliest',
    catchup_window_ms: null,
    earliest: null,
    latest: null,
    ...more,
  });
  const policies = fc.constantFrom(
    'none' as const,
    'earliest' as const,
    'latest' as const,
    'random' as const,
    'last' as const,
  );
  const offsets = fc.integer({ min: -2 * 86_400_000, max: 2 * 86_400_000 });

  it('deals with each instant up to now and leaves the next to come, whatever the schedule, offset and policy', () => {
    fc.assert(
      fc.property(
        specs,
        policies,
        offsets,
        fc.option(fc.nat(80), { nil: null }),
        (spec, catchup, offset, latestDay) => {
          const schedule = compileSchedule(spec);
          const passed = noon - offset;
          const latestMs =
            latestDay === null
              ? null
              : [...instantsBetween(schedule, spec.startMs, spec.startMs + (latestDay + 1) * 86_400_000)].at(-1);
          const latest = latestMs === null || latestMs === undefined ? null : new Date(latestMs);
          const row = rowOf(spec, {
            catchup,
            offset_ms: offset,
            latest,
            earliest: latest === null ? null : new Date(spec.startMs),
          });
          const { fire, catchups, marks, next } = arrive(row, schedule, noon, true);
          const missed = [
            ...instantsBetween(schedule, latest === null ? spec.startMs : latest.getTime() + 1, passed + 1),
          ];
          // the next is the first that is not due yet
          expect(next).toBe(nextInstant(schedule, Math.max(passed, latest?.getTime() ?? 0)));
          // the marks move to the ends of what was missed, and nothing that is not due fires
          expect(missed.length === 0 ? [] : [Math.min(...marks), Math.max(...marks)]).toEqual(
            missed.length === 0 ? [] : [missed[0], missed.at(-1)],
          );
          const due = new Set(missed);
          expect(fire.every((instant) => due.has(instant))).toBe(true);
          const caughtUp = catchups.flatMap(({ fromMs, toMs }) => [...instantsBetween(schedule, fromMs, toMs)]);
          if (catchup === 'none' || catchup === 'last') expect(caughtUp).toEqual([]);
          else expect([...fire, ...caughtUp]).toEqual(missed);
          if (catchup === 'last') expect(fire).toEqual(missed.slice(-1));
        },
      ),
      { numRuns: 100 },
    );
  });

  it('costs little however long ago the start is', () => {
    const spec: ScheduleSpec = {
      startMs: Date.UTC(1970, 0, 1),
      endMs: null,
      periodMs: 1_000,
      cron: null,
      timezone: null,
    };
    const before = performance.now();
    for (const catchup of ['none', 'last', 'earliest', 'random'] as const) {
      const row = rowOf(spec, { catchup });
      const { catchups } = arrive(row, compileSchedule(spec), noon, true);
      for (const { fromMs, toMs } of catchups) piecesOf(compileSchedule(spec), fromMs, toMs);
    }
    expect(performance.now() - before).toBeLessThan(500);
  });
});
