import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatDuration, parseDuration } from './duration.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

describe('humantime', () => {
  test.each<[string, number]>([
    ['1d', day],
    ['1h 30m', 90 * minute],
    ['1h30m', 90 * minute],
    ['30minutes', 30 * minute],
    ['2 days', 2 * day],
    ['20 min 17 sec ', 20 * minute + 17_000],
    ['1 000 s', 1_000_000],
    [' 5m', 5 * minute],
    ['1h 1h', 2 * hour],
    ['1.5h', 90 * minute],
    ['0.001s', 1],
    ['0', 0],
    ['0s', 0],
    ['1000000ns', 1],
    ['2000000nsec', 2],
    ['3000000nanos', 3],
    ['1000us', 1],
    ['2000usec', 2],
    ['3000µs', 3],
    ['5ms', 5],
    ['5msec', 5],
    ['5millis', 5],
    ['1s', 1000],
    ['1sec', 1000],
    ['2secs', 2000],
    ['1second', 1000],
    ['2seconds', 2000],
    ['2m', 2 * minute],
    ['2min', 2 * minute],
    ['2mins', 2 * minute],
    ['1minute', minute],
    ['2h', 2 * hour],
    ['2hr', 2 * hour],
    ['2hrs', 2 * hour],
    ['1hour', hour],
    ['2hours', 2 * hour],
    ['1day', day],
    ['1w', 7 * day],
    ['1wk', 7 * day],
    ['2wks', 14 * day],
    ['1week', 7 * day],
    ['2weeks', 14 * day],
    ['1M', 2_630_016_000],
    ['1month', 2_630_016_000],
    ['2months', 2 * 2_630_016_000],
    ['1y', 31_557_600_000],
    ['1yr', 31_557_600_000],
    ['1year', 31_557_600_000],
    ['2years', 2 * 31_557_600_000],
  ])('the duration %j is accepted', (text, ms) => {
    expect(parseDuration(text)).toEqual({ ok: true, ms });
  });

  test.each<[string, string]>([
    ['', 'is empty'],
    ['   ', 'is empty'],
    ['30', 'has no unit after 30'],
    ['1h 30', 'has no unit after 30'],
    ['1 fortnight', 'unknown unit "fortnight"'],
    ['1H', 'unknown unit "H"'],
    ['h', 'where a number is expected'],
    ['1h, 5m', 'where a number is expected'],
    ['1h -5m', 'where a number is expected'],
    ['.5h', 'where a number is expected'],
    ['1h\u0000', 'where a number is expected'],
    ['17ns', 'finer than a millisecond'],
    ['0.0001s', 'finer than a millisecond'],
    ['99999999999999999999y', 'too long'],
    ['9007199254740992ms', 'too long'],
    ['1'.repeat(1000), 'too long'],
  ])('the duration %j is rejected', (text, message) => {
    expect(parseDuration(text)).toEqual({ ok: false, message: expect.stringContaining(message) as unknown });
  });
});

describe('ISO 8601', () => {
  test.each<[string, number]>([
    ['PT1H30M', 90 * minute],
    ['P1D', day],
    ['P2W', 14 * day],
    ['P1DT12H', 36 * hour],
    ['PT0.5S', 500],
    ['PT0,5S', 500],
    ['PT1.5H', 90 * minute],
    ['PT36H', 36 * hour],
    ['PT0S', 0],
  ])('the duration %j is accepted', (text, ms) => {
    expect(parseDuration(text)).toEqual({ ok: true, ms });
  });

  test.each<[string, string]>([
    ['P', 'is not an ISO 8601 duration'],
    ['PT', 'is not an ISO 8601 duration'],
    ['P1DT', 'is not an ISO 8601 duration'],
    ['P1H', 'is not an ISO 8601 duration'],
    ['PT1D', 'is not an ISO 8601 duration'],
    ['PT1M1H', 'is not an ISO 8601 duration'],
    ['PT1.5H30M', 'is not an ISO 8601 duration'],
    ['PT1HT1M', 'is not an ISO 8601 duration'],
    ['P1D ', 'is not an ISO 8601 duration'],
    ['P-1D', 'is not an ISO 8601 duration'],
    ['P1M', 'depends on the calendar'],
    ['P1Y', 'depends on the calendar'],
    ['P1Y2M3DT4H', 'depends on the calendar'],
  ])('the duration %j is rejected', (text, message) => {
    expect(parseDuration(text)).toEqual({ ok: false, message: expect.stringContaining(message) as unknown });
  });
});

describe('signed durations', () => {
  test('a negative duration is accepted only with the option signed', () => {
    expect(parseDuration('-3m')).toEqual({ ok: false, message: 'must not be negative' });
    expect(parseDuration('-3m', { signed: true })).toEqual({ ok: true, ms: -3 * minute });
    expect(parseDuration('-PT3M', { signed: true })).toEqual({ ok: true, ms: -3 * minute });
  });

  test('the sign comes first and only once, and -0s is 0', () => {
    expect(parseDuration(' -3m', { signed: true }).ok).toBe(false);
    expect(parseDuration('--3m', { signed: true }).ok).toBe(false);
    expect(parseDuration('-', { signed: true }).ok).toBe(false);
    expect(parseDuration('-0s', { signed: true })).toEqual({ ok: true, ms: 0 });
  });
});

describe('formatDuration', () => {
  test.each<[number, string]>([
    [0, '0s'],
    [1, '1ms'],
    [90 * minute, '1h 30m'],
    [7 * day, '7d'],
    [day + 1001, '1d 1s 1ms'],
    [-3 * minute, '-3m'],
  ])('%i ms are formatted as %j', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test('parseDuration reads the text of formatDuration back to the same number', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (ms) => {
        expect(parseDuration(formatDuration(ms), { signed: true })).toEqual({ ok: true, ms: ms + 0 });
      }),
    );
  });
});

test('parseDuration throws for no text', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'-PT0159.,smhdwMy '.split('')), maxLength: 12 })),
      (text) => {
        const result = parseDuration(text, { signed: true });
        if (result.ok) expect(Number.isSafeInteger(result.ms)).toBe(true);
        else expect(result.message).not.toBe('');
      },
    ),
  );
});
