import { expect, it } from 'vitest';
import { parseJob } from './parse-job.ts';

function warningsOf(tasks: readonly object[]): string[] {
  const parsed = parseJob({ project: 'p', name: 'j', tasks });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.warnings.map(({ path, message }) => `${path} ${message.split(';')[0]}`);
}

it('a task that waits for itself at the same instant is warned of', () => {
  expect(warningsOf([{ name: 'c', depends: ['task/c'] }])).toEqual([
    'tasks[0] waits for itself at the same instant: task/c ← task/c',
  ]);
});

it('a cycle is warned of once, with its path', () => {
  const tasks = [
    { name: 'start' },
    { name: 'a', depends: ['task/start', 'task/c'] },
    { name: 'b', depends: ['task/a'] },
    { name: 'c', depends_done: ['task/b'] },
  ];
  expect(warningsOf(tasks)).toEqual([
    'tasks[1] waits for itself at the same instant: task/a ← task/c ← task/b ← task/a',
  ]);
});

it('a cycle that leads to a later instant, a long chain and a wide fan are not warned of', () => {
  expect(
    warningsOf([
      { name: 'a', depends: ['task/b@1d'] },
      { name: 'b', depends: ['task/a'] },
    ]),
  ).toEqual([]);
  const chain = Array.from({ length: 2_000 }, (_, i) => ({
    name: `t${i}`,
    depends: i === 0 ? [] : [`task/t${i - 1}`],
  }));
  expect(warningsOf(chain)).toEqual([]);
});

it('the search takes linear time, even for tasks between cycles', () => {
  // a search from each task took half a minute for five times as many
  const last = 1_999;
  const tasks = Array.from({ length: last + 1 }, (_, i) => ({
    name: `t${i}`,
    depends: [`task/t${Math.min(i + 1, last)}`],
  }));
  const startedMs = performance.now();
  expect(warningsOf(tasks)).toEqual([`tasks[${last}] waits for itself at the same instant: task/t1999 ← task/t1999`]);
  expect(performance.now() - startedMs).toBeLessThan(5_000);
});

it('the warning abbreviates a long cycle', () => {
  const tasks = Array.from({ length: 1_000 }, (_, i) => ({ name: `t${i}`, depends: [`task/t${(i + 1) % 1_000}`] }));
  expect(warningsOf(tasks)).toEqual([expect.stringMatching(/task\/t0 ← .* ← … \(981 more\) ← task\/t0$/) as unknown]);
});
