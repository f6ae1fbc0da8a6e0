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

describe('a threshold that edges never reach is warned of', () => {
  test('with its path and the numbers', () => {
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

  test('where success and failure of one run exclude each other', () => {
    const a: [string, object] = ['a', { depends: ['trigger/t'] }];
    expect(warned(a, ['b', { depends: ['task/a'], depends_failure: ['task/a'], threshold: 2 }])).toEqual([
      'tasks[1].threshold',
    ]);
    expect(warned(a, ['b', { depends: ['task/a'], depends_done: ['task/a'], threshold: 2 }])).toEqual([]);
    expect(warned(a, ['b', { depends: ['task/a'], depends_failure: ['task/a@1d'], threshold: 2 }])).toEqual([]);
  });

  test('once, and not again for all that depend on it', () => {
    expect(warned(['a', { depends: ['trigger/t'], threshold: 2 }], ['b', { depends: ['task/a'] }])).toEqual([
      'tasks[0].threshold',
    ]);
  });
});

describe('a task that depends on its own past is warned of', () => {
  const messages = (task: object): string[] => {
    const parsed = parseJob({ project: 'p', name: 'j', triggers, tasks: [{ name: 'x', ...task }] });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    return parsed.warnings.map(({ path, message }) => `${path}: ${message}`);
  };

  test('where nothing but itself starts it, again and again', () => {
    const endless = 'tasks[0]: once started it starts itself again 1d later, and nothing ends that: ';
    const [alone] = messages({ depends: ['task/x@1d'] });
    expect(alone).toBe(`${endless}give it a trigger or another parent as well`);
    const [one] = messages({ depends: ['trigger/t', 'task/x@1d'], threshold: 1 });
    expect(one).toBe(`${endless}with a threshold of more than 1 it would wait for its other parents as well`);
    expect(messages({ depends_done: ['p/j/task/x@1d', 'task/x@2d'] })[0]).toContain('again 1d and 2d later');
  });

  test('where its first instant would need an earlier run', () => {
    const first =
      'tasks[0]: its first instant waits for its own run 1d before, which there is none of: start it once by hand, ' +
      '`millrace activate PROJECT/JOB TASK INSTANT`';
    expect(messages({ depends: ['trigger/t', 'task/x@1d'] })).toEqual([first]);
    expect(messages({ depends: ['trigger/t', 'trigger/u'], depends_done: ['task/x@1d'] })).toEqual([first]);
  });

  test('where both it and what it depends on would, and where no run of its own would do', () => {
    const a: [string, object] = ['a', { depends: ['trigger/t', 'task/a@1d'] }];
    expect(warned(a, ['b', { depends: ['task/a', 'task/b@1d'] }])).toEqual(['tasks[0]', 'tasks[1]']);
    expect(warned(['d', { depends: ['task/d@1d'], threshold: 2 }])).toEqual(['tasks[0].threshold']);
  });

  test('but not where others suffice to start it and it does not suffice itself', () => {
    expect(messages({ depends: ['trigger/t'], depends_failure: ['task/x@1d'] })).toEqual([]);
    expect(messages({ depends: ['trigger/t', 'trigger/u', 'task/x@1d'], threshold: 2 })).toEqual([]);
    expect(messages({ depends: ['k/task/y', 'task/x@1d'] })).toEqual([]);
  });
});

describe('there is no warning', () => {
  test('where a parent may run several times in an instant', () => {
    const twice: [string, object] = ['a', { depends: ['trigger/t', 'trigger/u'], threshold: 1 }];
    expect(warned(twice, ['b', { depends: ['task/a'], threshold: 2 }])).toEqual([]);
    expect(warned(twice, ['b', { depends: ['task/a'], threshold: 3 }])).toEqual(['tasks[1].threshold']);
  });

  test('on or behind a cycle', () => {
    expect(
      warned(
        ['a', { depends: ['trigger/t', 'task/b@1d'], threshold: 1 }],
        ['b', { depends: ['task/a'] }],
        ['c', { depends: ['task/b'], threshold: 9 }],
      ),
    ).toEqual([]);
  });

  test('behind another job', () => {
    expect(
      warned(['a', { depends: ['k/task/x'], threshold: 5 }], ['b', { depends: ['task/a'], threshold: 5 }]),
    ).toEqual([]);
  });

  test('for a task that only activation starts', () => {
    expect(warned(['a', {}], ['b', { threshold: 3 }])).toEqual([]);
  });
});
