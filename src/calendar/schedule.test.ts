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

describe('start and end', () => {
  const hourly = spec({ start: '2024-01-01T00:10:00Z', end: '2024-01-01T03:10:00Z', periodMs: 3_600_000 });
  const cron = spec({ start: '2024-01-01T00:10:00Z', end: '2024-01-01T03:00:00Z', cron: '@hourly' });

  test('the start always fires, the end never does', () => {
    expect(list(hourly, '1970-01-01T00:00Z', '2100-01-01T00:00Z')).toEqual([
      '2024-01-01T00:10',
      '2024-01-01T01:10',
      '2024-01-01T02:10',
    ]);
    expect(list(cron, '1970-01-01T00:00Z', '2100-01-01T00:00Z')).toEqual([
      '2024-01-01T00:10',
      '2024-01-01T01:00',
      '2024-01-01T02:00',
    ]);
  });

  test('nextInstant is strictly after its argument; instantsBetween includes its first bound and excludes its last', () => {
    const schedule = compileSchedule(hourly);
    const [first, second] = [Date.parse('2024-01-01T00:10:00Z'), Date.parse('2024-01-01T01:10:00Z')];
    expect(nextInstant(schedule, first - 1)).toBe(first);
    expect(nextInstant(schedule, first)).toBe(second);
    expect(nextInstant(schedule, second - 1)).toBe(second);
    expect(nextInstant(schedule, Date.parse('2024-01-01T02:10:00Z'))).toBeUndefined();
    expect([...instantsBetween(schedule, first, second)]).toEqual([first]);
  });

  test('an expression whose years are over fires at its start only', () => {
    const past = compileSchedule(
      spec({ start: '2024-06-01T00:00:00Z', cron: '* * * * * * 2024', timezone: 'Europe/Berlin' }),
    );
    expect(nextInstant(past, Date.parse('2024-12-31T22:59:59Z'))).toBeUndefined();
    expect(nextInstant(past, Date.parse('9999-01-01T00:00:00Z'))).toBeUndefined();
    const old = compileSchedule(spec({ cron: '0 0 0 * * * 1999' }));
    expect([...instantsBetween(old, 0, Date.parse('9999-01-01T00:00:00Z'))]).toEqual([old.startMs]);
  });

  test('no instant lies beyond the year 9999', () => {
    const late = '9999-12-31T00:00:00Z';
    for (const timezone of [null, 'Europe/Berlin', 'Pacific/Auckland']) {
      for (const schedule of [{ periodMs: dayMs }, { cron: '0 6 * * *' }, { cron: '0 */6 * * *' }]) {
        const instants = [
          ...instantsBetween(compileSchedule(spec({ start: late, timezone, ...schedule })), 0, 8.64e15),
        ];
        expect(instants.length).toBeGreaterThan(0);
        expect(instants.length).toBeLessThan(8);
        expect(instants.at(-1)).toBeLessThan(Date.UTC(10_000, 0, 1));
      }
    }
  });
});

test('a hundred thousand instants take less than a second', () => {
  const schedule = compileSchedule(spec({ start: '1970-01-01T00:00:00Z', cron: '*/5 1-20 * * 1-5' }));
  const began = performance.now();
  let [count, at] = [0, 0];
  for (; count < 100_000; count++) at = nextInstant(schedule, at) ?? Number.NaN;
  expect(at).toBeGreaterThan(0);
  expect(performance.now() - began).toBeLessThan(1_000);
});

test('a period of one second finds an instant seven thousand years ahead directly', () => {
  const schedule = compileSchedule(spec({ start: '1970-01-01T00:00:00Z', periodMs: 1_000 }));
  expect(nextInstant(schedule, Date.parse('9000-01-01T00:00:00.001Z'))).toBe(Date.parse('9000-01-01T00:00:01Z'));
});
