import { describe, expect, test } from 'vitest';
import { parseJob } from './parse-job.ts';

const start = '2024-01-01T00:00:00Z';
const triggers = [
  { name: 't', start, period: '1d' },
  { name: 'u', start, period: '1d' },
];

/** The paths warned of, for tasks given as [name, fields]. */
function warned(...tasks: [string, object][]): string[] {
  const parsed = parseJob({
    project: 'p',
    name: 'j',
    triggers,
    tasks: tasks.map(([name, more]) => ({ name, ...more })),
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.warnings.map(({ path }) => path);
}

describe('thresholds that edges never reach', () => {
  test('the warning gives the path, the threshold and the maximum of tokens', () => {
    const tasks = [{ name: 'a', depends: ['trigger/t', 'trigger/u'], threshold: 3 }];
    expect(parseJob({ project: 'p', name: 'j', triggers, tasks })).toMatchObject({
      ok: true,
      warnings: [
        {
          path: 'tasks[0].threshold',
          message: 'is 3, but its edges give at most 2 per instant: it will only run when activated',
        },
      ],
    });
  });

  test('success and failure of one parent count as one token', () => {
    const a: [string, object] = ['a', { depends: ['trigger/t'] }];
    expect(warned(a, ['b', { depends: ['task/a'], depends_failure: ['task/a'], threshold: 2 }])).toEqual([
      'tasks[1].threshold',
    ]);
    expect(warned(a, ['b', { depends: ['task/a'], depends_done: ['task/a'], threshold: 2 }])).toEqual([]);
    expect(warned(a, ['b', { depends: ['task/a'], depends_failure: ['task/a@1d'], threshold: 2 }])).toEqual([]);
  });

  test('a task is warned of once, and not again for the tasks that depend on it', () => {
    expect(warned(['a', { depends: ['trigger/t'], threshold: 2 }], ['b', { depends: ['task/a'] }])).toEqual([
      'tasks[0].threshold',
    ]);
  });
});

describe('tasks that depend on their own earlier runs', () => {
  const messages = (task: object): string[] => {
    const parsed = parseJob({ project: 'p', name: 'j', triggers, tasks: [{ name: 'x', ...task }] });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    return parsed.warnings.map(({ path, message }) => `${path}: ${message}`);
  };

  test('a task that starts itself again without end is warned of', () => {
    const endless = 'tasks[0]: once started it starts itself again 1d later, without end: ';
    const [alone] = messages({ depends: ['task/x@1d'] });
    expect(alone).toBe(`${endless}give it a trigger or another parent as well`);
    const [one] = messages({ depends: ['trigger/t', 'task/x@1d'], threshold: 1 });
    expect(one).toBe(`${endless}with a threshold of more than 1 it would wait for its other parents as well`);
    expect(messages({ depends_done: ['p/j/task/x@1d', 'task/x@2d'] })[0]).toContain('again 1d and 2d later');
  });

  test('a task whose first instant needs an earlier run is warned of', () => {
    const first =
      'tasks[0]: its first instant waits for its own run 1d before, but there is no such run: start it once by hand, ' +
      '`millrace activate PROJECT/JOB TASK INSTANT`';
    expect(messages({ depends: ['trigger/t', 'task/x@1d'] })).toEqual([first]);
    expect(messages({ depends: ['trigger/t', 'trigger/u'], depends_done: ['task/x@1d'] })).toEqual([first]);
  });

  test('a parent and a child that both need an earlier run are both warned of, and so is a threshold out of reach', () => {
    const a: [string, object] = ['a', { depends: ['trigger/t', 'task/a@1d'] }];
    expect(warned(a, ['b', { depends: ['task/a', 'task/b@1d'] }])).toEqual(['tasks[0]', 'tasks[1]']);
    expect(warned(['d', { depends: ['task/d@1d'], threshold: 2 }])).toEqual(['tasks[0].threshold']);
  });

  test('a task that its other parents can start, and that does not restart itself alone, is not warned of', () => {
    expect(messages({ depends: ['trigger/t'], depends_failure: ['task/x@1d'] })).toEqual([]);
    expect(messages({ depends: ['trigger/t', 'trigger/u', 'task/x@1d'], threshold: 2 })).toEqual([]);
    expect(messages({ depends: ['k/task/y', 'task/x@1d'] })).toEqual([]);
  });
});

describe('thresholds without a warning', () => {
  test('a parent that may run several times in an instant gives several tokens', () => {
    const twice: [string, object] = ['a', { depends: ['trigger/t', 'trigger/u'], threshold: 1 }];
    expect(warned(twice, ['b', { depends: ['task/a'], threshold: 2 }])).toEqual([]);
    expect(warned(twice, ['b', { depends: ['task/a'], threshold: 3 }])).toEqual(['tasks[1].threshold']);
  });

  test('tasks on or behind a cycle are not warned of', () => {
    expect(
      warned(
        ['a', { depends: ['trigger/t', 'task/b@1d'], threshold: 1 }],
        ['b', { depends: ['task/a'] }],
        ['c', { depends: ['task/b'], threshold: 9 }],
      ),
    ).toEqual([]);
  });

  test('tasks behind another job are not warned of', () => {
    expect(
      warned(['a', { depends: ['k/task/x'], threshold: 5 }], ['b', { depends: ['task/a'], threshold: 5 }]),
    ).toEqual([]);
  });

  test('a task that only activation starts is not warned of', () => {
    expect(warned(['a', {}], ['b', { threshold: 3 }])).toEqual([]);
  });
});
