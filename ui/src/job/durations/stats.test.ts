import { expect, test } from 'vitest';
import { gather, quantile } from './stats.ts';

const row = (hour: number, task_name: string, duration: number) => ({
  trigger_datetime: `2026-01-01T0${hour}:00:00.000Z`,
  task_name,
  duration,
});

test('durations are gathered by task and by instant, the slowest task first', () => {
  const { instants, totals, tasks } = gather([row(2, 'a', 3), row(1, 'a', 1), row(2, 'b', 10), row(0, 'a', 2)]);
  expect(instants.map((instant) => instant.slice(11, 13))).toEqual(['00', '01', '02']);
  expect(totals).toEqual([2, 1, 13]);
  expect(tasks.map(({ name }) => name)).toEqual(['b', 'a']);
  expect(tasks[0]).toMatchObject({ runs: 1, latest: 10, series: [undefined, undefined, 10] });
  expect(tasks[1]).toMatchObject({ runs: 3, latest: 3, p50: 2, max: 3, series: [2, 1, 3] });
});

test('a quantile is a value that was measured', () => {
  const values = Array.from({ length: 20 }, (_, n) => n + 1);
  expect([0.5, 0.95, 1].map((part) => quantile(values, part))).toEqual([10, 19, 20]);
  expect(quantile([], 0.5)).toBe(0);
});
