import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSchedule, instantsBetween, nextInstant, type ScheduleSpec } from '../../calendar/schedule.ts';
import { arrive, graceMs } from '../arrival.ts';
import { cut, listPieceInstants, countPieces, planOf, recut } from './catchup.ts';
import type { PlannedCatchup, TriggerRow } from '../queries.ts';

const noon = Date.UTC(2026, 5, 1);
const minute = 60_000;
const dayMs = 1_440 * minute;
const specs: fc.Arbitrary<ScheduleSpec> = fc
  .tuple(
    fc.oneof(
      fc.integer({ min: 300_000, max: 3 * dayMs }).map((periodMs) => ({ periodMs, cron: null })),
      // the last one in bursts
      fc
        .constantFrom('*/7 * * * *', '0 3 * * *', '0 0 1 * *', '0 0 29 2 *', '*/10 * * 1 5 *')
        .map((cron) => ({ periodMs: null, cron })),
    ),
    fc.constantFrom(null, 'Europe/Berlin'),
  )
  .map(([when, timezone]) => ({ ...when, startMs: noon - 90 * dayMs, endMs: null, timezone }));

const rowOf = (spec: ScheduleSpec, more: Partial<TriggerRow> = {}): TriggerRow => ({
  id: 't',
  job_id: 'j',
  start_at: new Date(spec.startMs),
  end_at: spec.endMs === null ? null : new Date(spec.endMs),
  period_ms: spec.periodMs,
  cron: spec.cron,
  timezone: spec.timezone,
  offset_ms: 0,
  catchup: 'earliest',
  catchup_window_ms: null,
  earliest: null,
  latest: null,
  since: new Date(spec.startMs - dayMs),
  ...more,
});

/** The instants of the row's next piece and all later pieces, in order. */
function listFired(row: PlannedCatchup, spec: ScheduleSpec): number[] {
  const schedule = compileSchedule(spec);
  const seen: number[] = [];
  for (let next = row.next_piece; next < row.pieces; next++) {
    const piece = listPieceInstants({ ...row, next_piece: next }, schedule);
    expect(piece.length).toBeLessThanOrEqual(500);
    seen.push(...piece);
  }
  return seen;
}

const piecewise = fc.constantFrom('earliest' as const, 'latest' as const, 'random' as const);
const ranges = fc.tuple(fc.integer({ min: 0, max: 60 * 24 * 60 }), fc.integer({ min: 1, max: 20 * 24 * 60 }));

describe('the pieces of a catch-up', () => {
  it('the pieces together hold every instant of the range once, in the order of the policy', () => {
    fc.assert(
      fc.property(specs, ranges, piecewise, fc.nat(2 ** 30 - 1), (spec, [from, length], catchup, seed) => {
        const fromMs = spec.startMs + from * minute;
        const toMs = fromMs + length * minute;
        const schedule = compileSchedule(spec);
        const all = [...instantsBetween(schedule, fromMs, toMs)];
        const row = { ...cut(rowOf(spec, { catchup }), schedule, { fromMs, toMs }), next_piece: 0, seed };
        expect(row.pieces).toBe(Math.max(1, Math.ceil(all.length / 500)));
        const seen = listFired(row, spec);
        if (catchup === 'latest') expect(seen).toEqual(all.toReversed());
        else expect(catchup === 'earliest' ? seen : seen.toSorted((a, b) => a - b)).toEqual(all);
        if (catchup === 'random' && all.length > 20) expect(seen).not.toEqual(all);
      }),
      { numRuns: 100 },
    );
  });

  it('a piece of ten years of seconds is found quickly, wherever in the range it is', () => {
    const spec = { startMs: Date.UTC(2016, 0, 1), endMs: null, periodMs: null, cron: '* * * * * *', timezone: null };
    const schedule = compileSchedule({ ...spec, timezone: 'Europe/Berlin' });
    const began = performance.now();
    const row = { ...cut(rowOf(spec), schedule, { fromMs: spec.startMs, toMs: noon }), next_piece: 0 };
    for (const next_piece of [0, 1, 100_000, row.pieces - 2]) {
      expect(listPieceInstants({ ...row, next_piece }, schedule)).toHaveLength(500);
    }
    expect(performance.now() - began).toBeLessThan(3_000);
  });
});

describe('the rest of a catch-up whose trigger is edited', () => {
  const minutely: ScheduleSpec = {
    startMs: noon - 2 * dayMs,
    endMs: null,
    periodMs: minute,
    cron: null,
    timezone: null,
  };
  const range = { fromMs: noon - dayMs, toMs: noon };
  const beginRow = (catchup: TriggerRow['catchup'], next_piece: number): PlannedCatchup => ({
    ...cut(rowOf(minutely, { catchup }), compileSchedule(minutely), range),
    next_piece,
  });
  const listRest = (row: PlannedCatchup, spec: ScheduleSpec, more: Partial<TriggerRow> = {}): number[] => {
    const rest = recut(row, rowOf(spec, more), compileSchedule(spec), noon);
    return rest === undefined ? [] : listFired({ ...rest, next_piece: 0 }, spec).toSorted((a, b) => a - b);
  };
  const listAll = (spec: ScheduleSpec, fromMs: number, toMs: number): number[] => [
    ...instantsBetween(compileSchedule(spec), fromMs, toMs),
  ];
  const hourly = { ...minutely, periodMs: 60 * minute };

  it('the rest has the instants that have not fired yet, by the new schedule', () => {
    expect(listRest(beginRow('earliest', 1), hourly)).toEqual(listAll(hourly, noon - dayMs + 500 * minute, noon));
    expect(listRest(beginRow('latest', 1), hourly, { catchup: 'latest' })).toEqual(
      listAll(hourly, noon - dayMs, noon - dayMs + 1_000 * minute),
    );
    expect(listRest(beginRow('random', 1), hourly, { catchup: 'random' })).toEqual(listAll(hourly, noon - dayMs, noon));
    expect(listRest({ ...beginRow('earliest', 1), plan: null }, hourly)).toEqual(listAll(hourly, noon - dayMs, noon));
  });

  it('the rest has nothing before a later start or after an earlier end', () => {
    const [start, end] = [noon - 600 * minute, noon - 300 * minute];
    expect(listRest(beginRow('earliest', 1), { ...minutely, startMs: start })).toEqual(listAll(minutely, start, noon));
    expect(listRest(beginRow('earliest', 1), { ...minutely, endMs: end })).toEqual(
      listAll(minutely, noon - dayMs + 500 * minute, end),
    );
    expect(listRest(beginRow('earliest', 1), { ...minutely, endMs: noon - dayMs })).toEqual([]);
    expect(listRest(beginRow('earliest', 1), { ...minutely, startMs: noon })).toEqual([]);
  });

  it('edits that do not affect the schedule or policy keep the plan', () => {
    const row = rowOf(minutely);
    expect(
      planOf({ ...row, offset_ms: 5, latest: new Date(noon), earliest: new Date(noon), since: new Date(noon) }),
    ).toBe(planOf(row));
    expect(planOf({ ...row, timezone: 'UTC' })).not.toBe(planOf(row));
  });

  it('the rest is empty with `none`, the newest instant with `last`, and limited by the window', () => {
    expect(listRest(beginRow('earliest', 1), minutely, { catchup: 'none' })).toEqual([]);
    expect(listRest(beginRow('earliest', 1), minutely, { catchup: 'last' })).toEqual([noon - minute]);
    expect(listRest(beginRow('earliest', 1), minutely, { catchup_window_ms: 10 * minute })).toEqual(
      listAll(minutely, noon - 10 * minute, noon),
    );
    expect(listRest(beginRow('earliest', 1), minutely, { catchup: 'last', catchup_window_ms: 1 })).toEqual([]);
  });
});

describe('a trigger that enters the queue', () => {
  const policies = fc.constantFrom('none' as const, 'last' as const, 'earliest' as const, 'latest' as const);
  const offsets = fc.oneof(fc.constant(0), fc.integer({ min: -2 * dayMs, max: 2 * dayMs }));
  const latestDays = fc.option(fc.nat(89), { nil: null });
  const windows = fc.option(fc.nat(40 * dayMs), { nil: null });
  /** Whether the trigger was known, and how long ago it was applied. */
  const lives = fc.tuple(fc.boolean(), fc.oneof(fc.nat(3 * minute), fc.nat(100 * dayMs)));

  it('each instant up to now fires, is caught up, is skipped, or is only late', () => {
    fc.assert(
      fc.property(
        specs,
        policies,
        offsets,
        latestDays,
        fc.tuple(windows, lives),
        (spec, catchup, offset, latestDay, [window, [known, age]]) => {
          const schedule = compileSchedule(spec);
          const passed = noon - offset;
          const seen =
            latestDay === null
              ? undefined
              : [...instantsBetween(schedule, spec.startMs, spec.startMs + (latestDay + 1) * dayMs)].at(-1);
          const row = rowOf(spec, {
            catchup,
            offset_ms: offset,
            catchup_window_ms: window,
            latest: seen === undefined ? null : new Date(seen),
            earliest: seen === undefined ? null : new Date(spec.startMs),
            since: new Date(noon - age),
          });
          const { fire, catchups, skipped, marks, next } = arrive(row, schedule, noon, known);
          const due = [...instantsBetween(schedule, seen === undefined ? spec.startMs : seen + 1, passed + 1)];
          const isLate = (instant: number): boolean => next !== undefined && instant >= next;
          const [missed, late] = [due.filter((each) => !isLate(each)), due.filter(isLate)];
          const inside = (ranges: typeof catchups): number[] =>
            ranges.flatMap(({ fromMs, toMs }) => [...instantsBetween(schedule, fromMs, toMs)]);
          // every missed instant is in exactly one place, and the instant after them is next
          const placed = [...fire, ...inside(catchups), ...inside(skipped)].toSorted((a, b) => a - b);
          expect(placed).toEqual(missed);
          expect(next).toBe(late[0] ?? nextInstant(schedule, Math.max(passed, seen ?? 0)));
          expect(marks.length === 0 ? [] : [Math.min(...marks), Math.max(...marks)]).toEqual(
            missed.length === 0 ? [] : [missed[0], missed.at(-1)],
          );
          // an instant is late by at most a minute, and only if the trigger was known or the instant came due since
          for (const instant of late) {
            expect(instant).toBeGreaterThanOrEqual(passed - graceMs);
            if (!known || seen === undefined) expect(instant + offset).toBeGreaterThan(noon - age);
          }
          const wanted = missed.filter((instant) => window === null || instant >= passed - window);
          if (catchup === 'none') expect(placed).toEqual(inside(skipped));
          else if (catchup === 'last') expect(fire).toEqual(wanted.slice(-1));
          else expect(inside(catchups)).toEqual(wanted);
        },
      ),
      { numRuns: 120 },
    );
  });

  it.each([
    // known trigger, outage of less than a minute: nothing is missed
    { latest: 50, since: 3_600, known: true, missed: [], next: 40 },
    // known trigger, longer outage: everything is missed
    { latest: 80, since: 3_600, known: true, missed: [70, 60, 50, 40, 30, 20, 10, 0], next: -10 },
    // unpaused fifteen seconds ago: instants that came due since are late
    { latest: 50, since: 15, known: false, missed: [40, 30, 20], next: 10 },
    // unpaused two minutes ago, and not checked since
    { latest: 200, since: 125, known: false, missed: Array.from({ length: 20 }, (_, i) => 190 - i * 10), next: -10 },
  ])('an instant that is only late is next: %o', ({ latest, since, known, missed, next }) => {
    const ago = (seconds: number): number => noon - seconds * 1_000;
    const spec = { startMs: noon - dayMs, endMs: null, periodMs: 10_000, cron: null, timezone: null };
    const row = rowOf(spec, {
      catchup: 'none',
      earliest: new Date(spec.startMs),
      latest: new Date(ago(latest)),
      since: new Date(ago(since)),
    });
    const arrival = arrive(row, compileSchedule(spec), noon, known);
    const skipped = arrival.skipped.flatMap(({ fromMs, toMs }) => [
      ...instantsBetween(compileSchedule(spec), fromMs, toMs),
    ]);
    expect(skipped).toEqual(missed.map(ago));
    expect(arrival.next).toBe(ago(next));
  });

  it('an arrival is quick, however long ago the start is', () => {
    const spec = { startMs: 0, endMs: null, periodMs: 1_000, cron: null, timezone: null };
    const bursts = { ...spec, periodMs: null, cron: '* * * 1 1 *', timezone: 'Europe/Berlin' };
    const before = performance.now();
    for (const each of [spec, bursts]) {
      for (const catchup of ['none', 'last', 'earliest', 'random'] as const) {
        const schedule = compileSchedule(each);
        const { catchups } = arrive(rowOf(each, { catchup }), schedule, noon, true);
        for (const { fromMs, toMs } of catchups) countPieces(schedule, fromMs, toMs);
      }
    }
    expect(performance.now() - before).toBeLessThan(3_000);
  });
});
