/**
 * Compares schedules with an oracle that shares no code with them (`test/harness/clock-oracle.ts`), around clock changes of
 * every kind. Cases are random: a failure prints its seed, and MILLRACE_SEED=… sets another.
 */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  cronInstants,
  dayPeriodInstants,
  type Place,
  type PlaceOptions,
  placeOf,
  weekdayNames,
} from '../../test/harness/clock-oracle.ts';
import { compileSchedule, countInstants, instantAt, instantsBetween, type Schedule } from './schedule.ts';

const seed = Number(process.env['MILLRACE_SEED'] ?? 20_260_601);

/** Zones, with the times of their clock changes. Two zones have none. */
const places: readonly (readonly [zone: string, around: string])[] = [
  ['Europe/Berlin', '2024-03-31T01:00Z'],
  ['Europe/Berlin', '2024-10-27T01:00Z'],
  ['America/New_York', '2024-03-10T07:00Z'],
  ['America/New_York', '2024-11-03T06:00Z'],
  // half an hour
  ['Australia/Lord_Howe', '2024-04-06T15:00Z'],
  ['Australia/Lord_Howe', '2024-10-05T15:30Z'],
  // two hours
  ['Antarctica/Troll', '2024-03-31T01:00Z'],
  ['Antarctica/Troll', '2024-10-27T01:00Z'],
  // at midnight: a day begins at one o'clock, or its last hour is repeated
  ['America/Sao_Paulo', '2018-11-04T03:00Z'],
  ['America/Sao_Paulo', '2019-02-17T02:00Z'],
  ['Asia/Beirut', '2022-03-26T22:00Z'],
  ['Asia/Beirut', '2022-10-29T21:00Z'],
  ['America/Asuncion', '2023-10-01T04:00Z'],
  ['America/Asuncion', '2024-03-24T03:00Z'],
  ['America/Havana', '2024-11-03T05:00Z'],
  // Ramadan
  ['Africa/Casablanca', '2024-03-10T02:00Z'],
  ['Africa/Casablanca', '2024-04-14T02:00Z'],
  // permanent changes, by half and quarter hours
  ['America/Caracas', '2007-12-09T07:00Z'],
  ['America/Caracas', '2016-05-01T07:00Z'],
  ['Asia/Kathmandu', '1985-12-31T18:30Z'],
  ['Asia/Pyongyang', '2015-08-14T15:00Z'],
  ['Asia/Pyongyang', '2018-05-04T15:00Z'],
  // offsets of odd minutes, and zones without a change
  ['Pacific/Chatham', '2024-04-06T14:00Z'],
  ['Asia/Kolkata', '2024-02-29T00:00Z'],
  ['UTC', '2023-12-31T23:00Z'],
];
/** Zones that skipped a whole day. */
const daysSkipped = [
  ['Pacific/Apia', '2011-12-30T10:00Z'],
  ['Pacific/Kwajalein', '1993-08-21T12:00Z'],
] as const;

function clocks(from: readonly (readonly [string, string])[], how: Omit<PlaceOptions, 'zone' | 'around'>): Place[] {
  return from.map(([zone, around]) => placeOf({ zone, around, ...how }));
}

const byMinute = [
  ...clocks(places, { hours: 72, guardHours: 26, stepMs: 60_000 }),
  ...clocks(daysSkipped, { hours: 96, guardHours: 50, stepMs: 60_000 }),
];
const bySecond = clocks(places, { hours: 3, guardHours: 2.5, stepMs: 1_000 });

/** Drawn by index, because a failed case would print pages for a clock. */
function placeIn(all: readonly Place[]): fc.Arbitrary<() => Place> {
  return fc.nat(all.length - 1).map((number) => {
    const place = all[number] as Place;
    return Object.assign(() => place, { toString: () => `${place.zone} ${new Date(place.fromMs).toISOString()}` });
  });
}

interface FieldOptions {
  readonly min: number;
  readonly max: number;
  /** The weight of a wildcard. All other forms together weigh 6. */
  readonly open?: number;
  readonly names?: readonly string[];
  readonly any?: readonly string[];
}

function field({ min, max, open = 1, names = [], any = ['*'] }: FieldOptions): fc.Arbitrary<string> {
  const number = fc.integer({ min, max });
  const written = number.chain((n) => fc.constantFrom(String(n), names[n - min] ?? String(n)));
  const range = fc.tuple(number, number).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
  const step = fc.integer({ min: 1, max: Math.max(2, Math.ceil((max - min) / 2)) });
  const stepped = fc
    .tuple(fc.oneof(fc.constantFrom(...any), range, number.map(String)), step)
    .map(([base, by]) => `${base}/${by}`);
  const list = fc.uniqueArray(fc.oneof(written, range), { minLength: 1, maxLength: 4 }).map((items) => items.join(','));
  return fc.oneof(
    { weight: open, arbitrary: fc.constantFrom(...any) },
    { weight: 3, arbitrary: written },
    { weight: 1, arbitrary: list },
    { weight: 1, arbitrary: range },
    { weight: 1, arbitrary: stepped },
  );
}

const months = ['JAN', 'feb', 'Mar', 'apr', 'may', 'jun', 'jul', 'aug', 'SEP', 'oct', 'nov', 'dec'];
/** Prefers the hours in which clocks change. */
const hour = fc.oneof(
  { weight: 2, arbitrary: field({ min: 0, max: 23, open: 3 }) },
  { weight: 3, arbitrary: field({ min: 0, max: 4 }) },
  { weight: 1, arbitrary: field({ min: 22, max: 23 }) },
  { weight: 1, arbitrary: fc.constantFrom('0-23', '0-11,12-23', '0-22') },
);
const day = field({ min: 1, max: 31, open: 8, any: ['*', '?'] });
const month = field({ min: 1, max: 12, open: 20, names: months });

const fiveFields = fc
  .tuple(
    field({ min: 0, max: 59 }),
    hour,
    day,
    month,
    field({ min: 0, max: 7, open: 8, names: weekdayNames, any: ['*', '?'] }),
  )
  .map((fields) => fields.join(' '));

/** Six fields, or seven with the year. */
const sixFields = fc
  .tuple(
    field({ min: 0, max: 59 }),
    field({ min: 0, max: 59, open: 6 }),
    hour,
    day,
    month,
    field({ min: 1, max: 7, open: 8, names: weekdayNames, any: ['*', '?'] }),
    fc.option(field({ min: 1985, max: 2024, open: 12 }), { nil: undefined, freq: 2 }),
  )
  .map((fields) => fields.filter((text) => text !== undefined).join(' '));

const yearMs = 365 * 86_400_000;

/** Undefined for an expression that never fires, such as the 31st of February. */
function tryCompile(cron: string, { zone, fromMs }: Place): Schedule | undefined {
  try {
    return compileSchedule({ startMs: fromMs - yearMs, endMs: null, periodMs: null, cron, timezone: zone });
  } catch {
    return undefined;
  }
}

function expectAgreement(here: () => Place, cron: string): void {
  const place = here();
  const schedule = tryCompile(cron, place);
  fc.pre(schedule !== undefined);
  if (schedule === undefined) return;
  const found = [...instantsBetween(schedule, place.fromMs, place.toMs)];
  expect(found, `${cron} in ${place.zone}`).toEqual(cronInstants(cron, place));
}

describe('agreement with the oracle', { timeout: 60_000 }, () => {
  test('expressions of five fields give the instants of the oracle in every zone', () => {
    fc.assert(fc.property(placeIn(byMinute), fiveFields, expectAgreement), { seed, numRuns: 2_000 });
  });

  test('expressions of six and seven fields give the instants of the oracle in every zone', () => {
    fc.assert(fc.property(placeIn(bySecond), sixFields, expectAgreement), { seed, numRuns: 1_200 });
  });

  test('periods of whole days keep the wall-clock time, or fire at the first time after it that exists', () => {
    const start = fc.integer({ min: 0, max: 26 * 60 - 1 });
    fc.assert(
      fc.property(placeIn(byMinute), start, fc.integer({ min: 1, max: 3 }), (here, minute, days) => {
        const place = here();
        const startMs = (place.shown.at[0] ?? 0) + minute * 60_000;
        const spec = { startMs, endMs: null, periodMs: days * 86_400_000, cron: null, timezone: place.zone };
        const found = [...instantsBetween(compileSchedule(spec), place.fromMs, place.toMs)];
        expect(found).toEqual(dayPeriodInstants(startMs, days, place));
      }),
      { seed, numRuns: 800 },
    );
  });
});

/** A position within the window, mostly in the hours around the change. */
const standpoint = fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), {
  weight: 4,
  arbitrary: fc.double({ min: 0.45, max: 0.55, noNaN: true }),
});

test('the next instant does not depend on where the search starts', { timeout: 60_000 }, () => {
  fc.assert(
    fc.property(placeIn(byMinute), fiveFields, standpoint, (here, cron, part) => {
      const place = here();
      const schedule = tryCompile(cron, place);
      if (schedule === undefined) return;
      const at = Math.floor(place.fromMs + part * (place.toMs - place.fromMs));
      const all = [...instantsBetween(schedule, place.fromMs, place.toMs)];
      const [next] = instantsBetween(schedule, at, place.toMs);
      expect(next).toBe(all.find((instant) => instant >= at));
    }),
    { seed, numRuns: 1_000 },
  );
});

describe('counting', { timeout: 60_000 }, () => {
  const period = fc.oneof(
    fc.integer({ min: 1, max: 3 }).map((days) => days * 86_400_000),
    fc.integer({ min: 1_000, max: 9_000_000 }),
  );
  const rule = fc.oneof(
    { weight: 3, arbitrary: fiveFields.map((cron) => ({ cron, periodMs: null })) },
    { weight: 1, arbitrary: period.map((periodMs) => ({ cron: null, periodMs })) },
  );
  const part = fc.oneof(standpoint, fc.constant(0.5));

  test('counting equals walking in any part of a window, start and end included', () => {
    const bounds = fc.tuple(part, part, part, fc.option(part, { nil: undefined }));
    fc.assert(
      fc.property(placeIn(byMinute), rule, bounds, (here, when, [a, b, begins, ends]) => {
        const { fromMs, toMs, zone: timezone } = here();
        const at = (x: number): number => Math.floor(fromMs + x * (toMs - fromMs));
        const startMs = at(begins) - 43_200_000;
        const endMs = ends === undefined ? null : Math.max(startMs + 1, at(ends));
        const schedule = tryCompileSpec({ ...when, startMs, endMs, timezone });
        if (schedule === undefined) return;
        const [low, high] = [at(Math.min(a, b)), at(Math.max(a, b))];
        const walked = [...instantsBetween(schedule, low, high)];
        expect(countInstants(schedule, low, high)).toBe(walked.length);
        for (const index of new Set([0, Math.floor(walked.length / 2), walked.length - 1])) {
          if (walked[index] !== undefined) expect(instantAt(schedule, low, high, index)).toBe(walked[index]);
        }
      }),
      { seed, numRuns: 1_500 },
    );
  });

  test('counting equals walking over decades', () => {
    const cases = fc.tuple(
      placeIn(byMinute),
      fc.constantFrom('0 3 * * *', '0 0-4 * * *', '30 2 1,15 * mon', '15 */6 * 3 *'),
    );
    fc.assert(
      fc.property(cases, fc.integer({ min: 0, max: 40 }), ([here, cron], years) => {
        const { zone: timezone } = here();
        const startMs = Date.UTC(1975, 4, 5, 6, 7, 8);
        const schedule = compileSchedule({ startMs, endMs: null, periodMs: null, cron, timezone });
        const toMs = startMs + years * yearMs;
        const walked = [...instantsBetween(schedule, startMs, toMs)];
        expect(countInstants(schedule, startMs, toMs)).toBe(walked.length);
        const index = Math.floor(walked.length / 3);
        if (walked.length > 0) expect(instantAt(schedule, startMs, toMs, index)).toBe(walked[index]);
      }),
      { seed, numRuns: 40 },
    );
  });

  function tryCompileSpec(spec: Parameters<typeof compileSchedule>[0]): Schedule | undefined {
    try {
      return compileSchedule(spec);
    } catch {
      return undefined;
    }
  }
});
