import { describe, expect, test } from 'vitest';
import { parseCron } from './cron.ts';
import { nextWall, readCron } from './cron-walk.ts';

/** The next n moments after 2024-01-01T00:00:00Z (a Monday), in UTC. */
function next(text: string, n: number, from = '2024-01-01T00:00:01Z'): string[] {
  const parsed = parseCron(text);
  if (!parsed.ok) throw new Error(parsed.message);
  const found: string[] = [];
  let at = nextWall(parsed.value, Date.parse(from));
  for (; at !== undefined && found.length < n; at = nextWall(parsed.value, at + 1)) {
    found.push(new Date(at).toISOString().replace('.000Z', ''));
  }
  return found;
}

describe('expressions of five fields, as in ordinary cron', () => {
  test.each<[string, string[]]>([
    ['30 6 * * *', ['2024-01-01T06:30:00', '2024-01-02T06:30:00']],
    ['*/20 * * * *', ['2024-01-01T00:20:00', '2024-01-01T00:40:00', '2024-01-01T01:00:00']],
    ['50/5 * * * *', ['2024-01-01T00:50:00', '2024-01-01T00:55:00', '2024-01-01T01:50:00']],
    ['0 9-17/4 * * *', ['2024-01-01T09:00:00', '2024-01-01T13:00:00', '2024-01-01T17:00:00', '2024-01-02T09:00:00']],
    ['0 0 * * 0', ['2024-01-07T00:00:00', '2024-01-14T00:00:00']],
    ['0 0 * * 7', ['2024-01-07T00:00:00', '2024-01-14T00:00:00']],
    ['0 0 * * sun', ['2024-01-07T00:00:00']],
    ['0 0 * * 1', ['2024-01-08T00:00:00']],
    ['0 0 * * Sat-Sun', ['2024-01-06T00:00:00', '2024-01-07T00:00:00', '2024-01-13T00:00:00']],
    ['0 0 * * 6-7', ['2024-01-06T00:00:00', '2024-01-07T00:00:00', '2024-01-13T00:00:00']],
    ['0 0 31 * *', ['2024-01-31T00:00:00', '2024-03-31T00:00:00']],
    ['0 0 29 2 *', ['2024-02-29T00:00:00', '2028-02-29T00:00:00']],
    ['0 0 1 jan,JULY *', ['2024-07-01T00:00:00', '2025-01-01T00:00:00']],
    ['0 0 1, 15 * ?', ['2024-01-15T00:00:00', '2024-02-01T00:00:00']],
    ['  5  4  *  *  * ', ['2024-01-01T04:05:00']],
  ])('the expression %j gives its moments', (text, moments) => {
    expect(next(text, moments.length)).toEqual(moments);
  });

  test('a day matches by either day field if both are restricted, else it must match both', () => {
    expect(next('0 0 13 * 5', 4)).toEqual([
      '2024-01-05T00:00:00',
      '2024-01-12T00:00:00',
      '2024-01-13T00:00:00',
      '2024-01-19T00:00:00',
    ]);
    expect(next('0 0 */2 * 5', 3)).toEqual(['2024-01-05T00:00:00', '2024-01-19T00:00:00', '2024-02-09T00:00:00']);
  });
});

describe('expressions of six and seven fields, as in Waterwheel', () => {
  test.each<[string, string[]]>([
    ['15,45 * * * * *', ['2024-01-01T00:00:15', '2024-01-01T00:00:45', '2024-01-01T00:01:15']],
    ['0 30 6 * * *', ['2024-01-01T06:30:00', '2024-01-02T06:30:00']],
    ['0 0 0 * * 1', ['2024-01-07T00:00:00', '2024-01-14T00:00:00']],
    ['0 0 0 * * 7', ['2024-01-06T00:00:00', '2024-01-13T00:00:00']],
    ['0 0 0 * * Mon-Thurs/2', ['2024-01-03T00:00:00', '2024-01-08T00:00:00']],
    ['0 0 0 13 * Fri', ['2024-09-13T00:00:00', '2024-12-13T00:00:00']],
    ['0 0 0 ? * ?', ['2024-01-02T00:00:00']],
    ['0 0 0 1 1 * 2030,2040-2041', ['2030-01-01T00:00:00', '2040-01-01T00:00:00', '2041-01-01T00:00:00']],
    ['0 0 0 1 1 * 2030/35', ['2030-01-01T00:00:00', '2065-01-01T00:00:00', '2100-01-01T00:00:00']],
    ['0 0 12 29 2 2', ['2044-02-29T12:00:00', '2072-02-29T12:00:00']],
  ])('the expression %j gives its moments', (text, moments) => {
    expect(next(text, moments.length + 1).slice(0, moments.length)).toEqual(moments);
  });

  test('an expression whose years are over yields nothing', () => {
    expect(next('* * * * * * 2023', 1)).toEqual([]);
    expect(next('0 0 0 1 1 * 2030/35', 9)).toHaveLength(3);
    expect(next('59 59 23 31 12 * 2024', 9)).toEqual(['2024-12-31T23:59:59']);
  });
});

test.each<[string, string[]]>([
  ['@yearly', ['2025-01-01T00:00:00', '2026-01-01T00:00:00']],
  ['@annually', ['2025-01-01T00:00:00']],
  ['@monthly', ['2024-02-01T00:00:00', '2024-03-01T00:00:00']],
  ['@weekly', ['2024-01-07T00:00:00', '2024-01-14T00:00:00']],
  ['@daily', ['2024-01-02T00:00:00']],
  ['@midnight', ['2024-01-02T00:00:00']],
  ['@hourly', ['2024-01-01T01:00:00', '2024-01-01T02:00:00']],
  ['@Daily', ['2024-01-02T00:00:00']],
])('the shorthand %j gives the moments of its expression', (text, moments) => {
  expect(next(text, moments.length)).toEqual(moments);
});

describe('rejected expressions', () => {
  test.each<[string, string]>([
    ['', 'must have five fields'],
    ['* * * *', 'must have five fields'],
    ['* * * * * * * *', 'must have five fields'],
    ['@reboot', 'is not one of @yearly'],
    ['60 * * * *', 'has "60" as minute; it must be 0 to 59'],
    ['* 24 * * *', 'it must be 0 to 23'],
    ['* * 0 * *', 'as day of the month; it must be 1 to 31'],
    ['* * * 13 *', 'as month; it must be 1 to 12, or a name'],
    ['* * * * 8', 'as day of the week; it must be 0 to 7'],
    ['* * * * * 0', 'as day of the week; it must be 1 to 7'],
    ['* * * * * 8', 'as day of the week; it must be 1 to 7'],
    ['* * * * * * 1969', 'as year; it must be 1970 to 2100'],
    ['* * * * * * 2101', 'as year; it must be 1970 to 2100'],
    ['61 25 * * *', 'has "61" as minute; it must be 0 to 59; and has "25" as hour; it must be 0 to 23'],
    ['* * * * bear', 'or a name'],
    ['* * * * mo', 'or a name'],
    ['? * * * *', '? may stand only for days'],
    ['5-1 * * * *', 'runs backwards'],
    ['* * * * fri-mon', 'runs backwards'],
    ['*/0 * * * *', 'a step of zero'],
    ['*-5 * * * *', 'is not understood'],
    ['1/2/3 * * * *', 'is not understood'],
    ['1,,2 * * * *', 'is not understood'],
    ['-1 * * * *', 'is not understood'],
    ['1.5 * * * *', 'is not understood'],
    ['* * L * *', 'it must be 1 to 31'],
    ['* * 15W * *', 'L, W and # are not supported'],
    ['* * * * 5#2', 'L, W and # are not supported'],
    ['0 0 30 2 *', 'never fires'],
    ['0 0 0 31 4,6,9,11 *', 'never fires'],
    ['0 0 0 29 2 * 2023', 'never fires'],
    ['0 0 0 29 2 * 2100', 'never fires'],
    [`${'1,'.repeat(1000)}1 * * * *`, 'is too long'],
  ])('the expression %j is rejected', (text, message) => {
    expect(readCron(text)).toEqual({ ok: false, message: expect.stringContaining(message) as unknown });
  });

  test('an expression with an impossible day of the month is accepted if its weekday occurs', () => {
    expect(readCron('0 0 30 2 1').ok).toBe(true);
  });
});

test.each<[string, boolean]>([
  ['0 2 * * *', true],
  ['0 1,2 * * *', true],
  ['*/5 1-5 * * *', true],
  ['@daily', true],
  ['0 * * * *', false],
  ['0 */2 * * *', false],
  ['0 1/2 * * *', false],
  ['0 9-17/2 * * *', false],
  ['0 0-23 * * *', false],
  ['0 2,*/6 * * *', false],
  ['@hourly', false],
])('the expression %j names its hours: %j', (text, named) => {
  expect(parseCron(text)).toMatchObject({ ok: true, value: { namesHours: named } });
});
