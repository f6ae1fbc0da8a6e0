import { expect, test } from 'vitest';
import { criticalPath, type InstantRun, rowsOf } from './rows.ts';
import { makeScale } from './scale.ts';

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();

function run(task: string, queued: number, finished: number | null, attempt = 1): InstantRun {
  return {
    task_id: task,
    task_run_id: `${task}${attempt}`,
    name: task,
    trigger_datetime: at(0),
    attempt,
    queued_datetime: at(queued),
    started_datetime: at(queued),
    finish_datetime: finished === null ? null : at(finished),
    state: finished === null ? 'running' : 'success',
    priority: 'normal',
    worker_id: null,
  };
}

const edge = (from: string, to: string) => ({ from, to, kind: 'success' as const });
const node = (id: string, kind: 'task' | 'trigger' = 'task', job_id = 'job') => ({
  id,
  kind,
  name: id,
  job_id,
  state: null,
});

test('rows stand as tasks follow from one another; those of removed tasks come last, foreign ones not at all', () => {
  const graph = {
    nodes: [node('t', 'trigger'), node('a'), node('b'), node('c'), node('x', 'task', 'other')],
    edges: [{ ...edge('t', 'c'), kind: 'trigger' as const }, edge('c', 'b'), edge('b', 'a'), edge('x', 'a')],
    jobs: [],
    complete: true,
  };
  const rows = rowsOf('job', graph, [run('c', 0, 1), run('gone', 0, 1), run('c', 1, 2, 2)]);
  expect(rows.map(({ name, runs }) => `${name} ${runs.length}`)).toEqual(['c 2', 'b 0', 'a 0', 'gone 1']);
});

test('the critical path goes back from what ended last, by what it waited for', () => {
  const edges = [edge('a', 'c'), edge('b', 'c'), edge('a', 'd')];
  const runs = [run('a', 0, 2), run('b', 0, 3), run('b', 4, 7, 2), run('c', 7, 9), run('d', 2, 4)];
  expect([...criticalPath(edges, runs)]).toEqual(['c1', 'b2', 'b1']);
  expect([...criticalPath(edges, [...runs, run('d', 9, null, 2)])][0]).toBe('d2');
  expect(criticalPath(edges, []).size).toBe(0);
});

test('times stand in proportion while nothing long lies between', () => {
  const scale = makeScale([
    { from: 0, to: 4_000 },
    { from: 5_000, to: 10_000 },
  ]);
  expect([-1, 0, 5_000, 10_000, 99_000].map(scale.place)).toEqual([0, 0, 0.5, 1, 1]);
  expect(scale.ticks.map(({ sinceStart }) => sinceStart)).toEqual([0, 2_000, 4_000, 6_000, 8_000, 10_000]);
});

test('a long pause is folded', () => {
  const day = 86_400_000;
  const scale = makeScale([
    { from: 0, to: 10_000 },
    { from: day, to: day + 10_000 },
  ]);
  expect(scale.stretches.map(({ folded }) => folded)).toEqual([false, true, false]);
  expect(scale.place(10_000)).toBeCloseTo(10 / 21);
  expect(scale.place(day)).toBeCloseTo(11 / 21);
  expect(scale.place(day + 5_000)).toBeCloseTo(16 / 21);
});

test('what took no time at all has a place', () => {
  expect(makeScale([{ from: 7, to: 7 }]).place(7)).toBe(0);
  expect(makeScale([]).place(7)).toBe(0);
});
