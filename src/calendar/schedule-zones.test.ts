import { describe, expect, test } from 'vitest';
import { compileSchedule, instantsBetween, nextInstant, type ScheduleSpec } from './schedule.ts';

const dayMs = 86_400_000;

function spec(more: Partial<Record<'start' | 'end', string>> & Partial<ScheduleSpec>): ScheduleSpec {
  const { start = '2024-01-01T00:00:00Z', end, ...rest } = more;
  const endMs = end === undefined ? null : Date.parse(end);
  return { startMs: Date.parse(start), endMs, periodMs: null, cron: null, timezone: null, ...rest };
}

function list(given: ScheduleSpec, from: string, to: string): string[] {
  const instants = instantsBetween(compileSchedule(given), Date.parse(from), Date.parse(to));
  return Array.from(instants, (ms) => new Date(ms).toISOString().slice(0, 16));
}

/** Clock changes: Berlin 2024-03-31 01:00Z +1h, 10-27 01:00Z −1h; New York 03-10 07:00Z, 11-03 06:00Z; Lord Howe 04-06 15:00Z −½h, 10-05 15:30Z +½h. */
describe('expressions in a zone', () => {
  test.each<[string, string, string, string, string[]]>([
    // a skipped time fires at the jump; a list fires once for each of its times
    [
      'Europe/Berlin',
      '30 2 * * *',
      '2024-03-30T00:00Z',
      '2024-04-02T00:00Z',
      ['2024-03-30T01:30', '2024-03-31T01:00', '2024-04-01T00:30'],
    ],
    [
      'Europe/Berlin',
      '0 1,2,3 * * *',
      '2024-03-31T00:00Z',
      '2024-03-31T12:00Z',
      ['2024-03-31T00:00', '2024-03-31T01:00'],
    ],
    ['Europe/Berlin', '*/20 2 * * *', '2024-03-31T00:00Z', '2024-03-31T12:00Z', ['2024-03-31T01:00']],
    [
      'America/New_York',
      '15 2 * * *',
      '2024-03-10T00:00Z',
      '2024-03-11T12:00Z',
      ['2024-03-10T07:00', '2024-03-11T06:15'],
    ],
    [
      'Australia/Lord_Howe',
      '15 2 * * *',
      '2024-10-05T00:00Z',
      '2024-10-06T20:00Z',
      ['2024-10-05T15:30', '2024-10-06T15:15'],
    ],
    [
      'Australia/Lord_Howe',
      '*/15 2 * * *',
      '2024-10-05T12:00Z',
      '2024-10-06T12:00Z',
      ['2024-10-05T15:30', '2024-10-05T15:45'],
    ],
    // a repeated time fires in its first pass only
    ['Europe/Berlin', '30 2 * * *', '2024-10-26T12:00Z', '2024-10-28T12:00Z', ['2024-10-27T00:30', '2024-10-28T01:30']],
    [
      'Europe/Berlin',
      '0 1,2,3 * * *',
      '2024-10-26T22:00Z',
      '2024-10-27T12:00Z',
      ['2024-10-26T23:00', '2024-10-27T00:00', '2024-10-27T02:00'],
    ],
    [
      'America/New_York',
      '30 1 * * *',
      '2024-11-03T00:00Z',
      '2024-11-04T12:00Z',
      ['2024-11-03T05:30', '2024-11-04T06:30'],
    ],
    [
      'Australia/Lord_Howe',
      '45 1 * * *',
      '2024-04-06T00:00Z',
      '2024-04-07T20:00Z',
      ['2024-04-06T14:45', '2024-04-07T15:15'],
    ],
    // wildcard and stepped hours follow elapsed time
    [
      'Europe/Berlin',
      '0 * * * *',
      '2024-03-31T00:00Z',
      '2024-03-31T03:30Z',
      ['2024-03-31T00:00', '2024-03-31T01:00', '2024-03-31T02:00', '2024-03-31T03:00'],
    ],
    [
      'Europe/Berlin',
      '30 * * * *',
      '2024-10-27T00:00Z',
      '2024-10-27T03:00Z',
      ['2024-10-27T00:30', '2024-10-27T01:30', '2024-10-27T02:30'],
    ],
    [
      'Europe/Berlin',
      '0 */2 * * *',
      '2024-10-26T22:00Z',
      '2024-10-27T04:00Z',
      ['2024-10-26T22:00', '2024-10-27T00:00', '2024-10-27T01:00', '2024-10-27T03:00'],
    ],
    [
      'Europe/Berlin',
      '0 */2 * * *',
      '2024-03-30T23:00Z',
      '2024-03-31T05:00Z',
      ['2024-03-30T23:00', '2024-03-31T02:00', '2024-03-31T04:00'],
    ],
    [
      'America/New_York',
      '*/30 * * * *',
      '2024-11-03T05:00Z',
      '2024-11-03T07:00Z',
      ['2024-11-03T05:00', '2024-11-03T05:30', '2024-11-03T06:00', '2024-11-03T06:30'],
    ],
    [
      'Australia/Lord_Howe',
      '0 * * * *',
      '2024-04-06T13:30Z',
      '2024-04-06T17:00Z',
      ['2024-04-06T14:00', '2024-04-06T15:30', '2024-04-06T16:30'],
    ],
    [
      'Australia/Lord_Howe',
      '45 * * * *',
      '2024-04-06T14:00Z',
      '2024-04-06T16:00Z',
      ['2024-04-06T14:45', '2024-04-06T15:15'],
    ],
    // zones without clock changes
    [
      'Asia/Kolkata',
      '30 9 * * mon',
      '2024-01-01T12:00Z',
      '2024-01-16T00:00Z',
      ['2024-01-08T04:00', '2024-01-15T04:00'],
    ],
    ['Asia/Kolkata', '0 * * * *', '2024-01-01T12:00Z', '2024-01-01T14:00Z', ['2024-01-01T12:30', '2024-01-01T13:30']],
    // a whole day that was skipped: Apia had no 2011-12-30
    [
      'Pacific/Apia',
      '0 12 * * *',
      '2011-12-29T00:00Z',
      '2012-01-01T00:00Z',
      ['2011-12-29T22:00', '2011-12-30T10:00', '2011-12-30T22:00', '2011-12-31T22:00'],
    ],
  ])('in %s the expression %j fires as listed from %s', (timezone, cron, from, to, instants) => {
    expect(list(spec({ start: '2010-01-01T00:00:00Z', cron, timezone }), from, to)).toEqual(instants);
  });

  test('the last time of an expression with stepped hours fires in both passes', () => {
    const given = spec({ start: '2024-10-01T00:00:00Z', cron: '0 30 2/30 27 10 * 2024', timezone: 'Europe/Berlin' });
    expect(list(given, '2024-10-02T00:00Z', '2030-01-01T00:00Z')).toEqual(['2024-10-27T00:30', '2024-10-27T01:30']);
  });

  test('a time that the clock shows again does not fire again', () => {
    const schedule = compileSchedule(spec({ cron: '0 59 2 * * *', timezone: 'Europe/Berlin' }));
    expect(nextInstant(schedule, Date.parse('2024-10-27T01:10:00Z'))).toBe(Date.parse('2024-10-28T01:59:00Z'));
  });
});

describe('periods in a zone', () => {
  test.each<[string, string, number, string, string, string[]]>([
    [
      'Europe/Berlin',
      '2024-03-29T08:00:00Z',
      1,
      '2024-03-30T00:00Z',
      '2024-04-02T00:00Z',
      ['2024-03-30T08:00', '2024-03-31T07:00', '2024-04-01T07:00'],
    ],
    [
      'Europe/Berlin',
      '2024-03-29T01:30:00Z',
      1,
      '2024-03-30T00:00Z',
      '2024-04-02T00:00Z',
      ['2024-03-30T01:30', '2024-03-31T01:00', '2024-04-01T00:30'],
    ],
    [
      'Europe/Berlin',
      '2024-10-20T00:30:00Z',
      7,
      '2024-10-20T00:00Z',
      '2024-11-05T00:00Z',
      ['2024-10-20T00:30', '2024-10-27T00:30', '2024-11-03T01:30'],
    ],
    [
      'Europe/Berlin',
      '2024-10-27T01:30:00Z',
      1,
      '2024-10-27T00:00Z',
      '2024-10-29T00:00Z',
      ['2024-10-27T01:30', '2024-10-28T01:30'],
    ],
    [
      'Australia/Lord_Howe',
      '2024-10-01T13:00:00Z',
      2,
      '2024-10-03T00:00Z',
      '2024-10-08T00:00Z',
      ['2024-10-03T13:00', '2024-10-05T13:00', '2024-10-07T12:30'],
    ],
    [
      'Pacific/Apia',
      '2011-12-28T10:00:00Z',
      1,
      '2011-12-29T00:00Z',
      '2012-01-01T00:00Z',
      ['2011-12-29T10:00', '2011-12-30T10:00', '2011-12-31T10:00'],
    ],
    [
      'Asia/Kolkata',
      '2024-01-01T00:00:00Z',
      1,
      '2024-01-02T00:00Z',
      '2024-01-04T00:00Z',
      ['2024-01-02T00:00', '2024-01-03T00:00'],
    ],
  ])(
    'A period in %s from %s, every %i days, keeps the wall-clock time',
    (timezone, start, days, from, to, instants) => {
      expect(list(spec({ start, periodMs: days * dayMs, timezone }), from, to)).toEqual(instants);
    },
  );

  test('a period is elapsed time if it is not of whole days, or has no zone', () => {
    const start = '2024-03-30T23:00:00Z';
    const half = spec({ start, periodMs: dayMs / 2, timezone: 'Europe/Berlin' });
    expect(list(half, start, '2024-04-01T00:00Z')).toEqual([
      '2024-03-30T23:00',
      '2024-03-31T11:00',
      '2024-03-31T23:00',
    ]);
    const whole = spec({ start, periodMs: dayMs });
    expect(list(whole, start, '2024-04-01T12:00Z')).toEqual(['2024-03-30T23:00', '2024-03-31T23:00']);
  });
});
