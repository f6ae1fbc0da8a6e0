import { describe, expect, test } from 'vitest';
import type { Fault } from '../../errors.ts';
import type { JobDefinition } from '../definition.ts';
import { parseJob } from './parse-job.ts';

const start = '2024-01-01T00:00:00Z';
const trigger = { name: 'daily', start, period: '1d' };

function job(more: object = {}): unknown {
  return { project: 'p', name: 'j', triggers: [trigger], tasks: [{ name: 'a', depends: ['trigger/daily'] }], ...more };
}

function accepted(input: unknown): JobDefinition {
  const parsed = parseJob(input);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.job;
}

function faults(input: unknown): readonly Fault[] {
  const parsed = parseJob(input);
  return parsed.ok ? [] : parsed.faults;
}

/** Expects a fault with this path, whose message contains the given text. */
function expectFault(input: unknown, path: string, message: string): void {
  expect(faults(input)).toEqual([{ path, message: expect.stringContaining(message) as unknown }]);
}

describe('references', () => {
  test('a full reference to the same job is local, and references to other jobs are left to the server', () => {
    const depends = ['trigger/daily', 'j/task/b', 'p/j/task/b@1h', 'k/task/b', 'q/j/trigger/t@1d'];
    const tasks = [{ name: 'a', depends, depends_done: ['k/task/c'] }, { name: 'b' }];
    const { tasks: built, foreignReferences } = accepted(job({ tasks }));
    const b = { local: true, project: 'p', job: 'j', kind: 'task', name: 'b' };
    const far = { local: false, project: 'p', job: 'k', kind: 'task', name: 'b' };
    const farther = { local: false, project: 'q', job: 'j', kind: 'trigger', name: 't' };
    expect(built[0]?.edges).toEqual([
      { kind: 'trigger', parent: { ...b, kind: 'trigger', name: 'daily' }, offsetMs: 0 },
      { kind: 'success', parent: b, offsetMs: 0 },
      { kind: 'success', parent: b, offsetMs: 3_600_000 },
      { kind: 'success', parent: far, offsetMs: 0 },
      { kind: 'trigger', parent: farther, offsetMs: 86_400_000 },
      { kind: 'done', parent: { ...far, name: 'c' }, offsetMs: 0 },
    ]);
    expect(foreignReferences).toEqual([
      { path: 'tasks[0].depends[3]', reference: far },
      { path: 'tasks[0].depends[4]', reference: farther },
      { path: 'tasks[0].depends_done[0]', reference: { ...far, name: 'c' } },
    ]);
  });

  const withA = (more: object) => job({ tasks: [{ name: 'load', ...more }, { name: 'extract' }] });

  test('a local reference must lead to an existing task or trigger', () => {
    expectFault(
      withA({ depends: ['task/extrakt'] }),
      'tasks[0].depends[0]',
      'does not have; did you mean task/extract?',
    );
    expectFault(withA({ depends: ['task/daily'] }), 'tasks[0].depends[0]', 'did you mean trigger/daily?');
    expectFault(
      withA({ depends: ['p/j/trigger/nope'] }),
      'tasks[0].depends[0]',
      'names the trigger "nope", which this job does not have; it has "daily"',
    );
    const many = Array.from({ length: 12 }, (_, i) => ({ name: `t${i}` }));
    expectFault(
      job({ triggers: [], tasks: [{ name: 'x', depends: ['task/nowhere'] }, ...many] }),
      'tasks[0].depends[0]',
      '"t7", "t8" and 3 more',
    );
    expectFault(
      job({ triggers: [], tasks: [{ name: 'x', depends: ['trigger/far'] }] }),
      'tasks[0].depends[0]',
      'it has no triggers',
    );
  });

  test('references must not repeat, but may differ in offset or kind', () => {
    expectFault(withA({ depends: ['task/extract', 'j/task/extract'] }), 'tasks[0].depends[1]', 'repeats depends[0]');
    expectFault(
      withA({ depends_done: ['k/task/x', 'p/k/task/x@0.5h', 'p/k/task/x@30m'] }),
      'tasks[0].depends_done[2]',
      'repeats',
    );
    expect(faults(withA({ depends: ['task/extract', 'task/extract@1d'], depends_done: ['task/extract'] }))).toEqual([]);
  });

  test('references to triggers are allowed only in depends', () => {
    expectFault(withA({ depends_failure: ['trigger/daily'] }), 'tasks[0].depends_failure[0]', 'names a trigger');
    expectFault(withA({ depends_done: ['k/trigger/x'] }), 'tasks[0].depends_done[0]', 'names a trigger');
  });

  test('malformed references are rejected', () => {
    expectFault(withA({ depends: ['extract'] }), 'tasks[0].depends[0]', 'is not a reference');
    expectFault(withA({ depends: ['task/extract@0s'] }), 'tasks[0].depends[0]', 'longer than zero');
  });
});
