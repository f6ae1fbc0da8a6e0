import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Fault } from '../../errors.ts';
import { storedLimits } from './limits.ts';
import { parseJob, parseJobText } from './parse-job.ts';

const start = '2024-01-01T00:00:00Z';
const trigger = { name: 'daily', start, period: '1d' };

function job(more: object = {}): unknown {
  return { project: 'p', name: 'j', triggers: [trigger], tasks: [{ name: 'a', depends: ['trigger/daily'] }], ...more };
}

function faults(input: unknown): readonly Fault[] {
  const parsed = parseJob(input);
  return parsed.ok ? [] : parsed.faults;
}

describe('hostile documents', () => {
  test.each([null, undefined, 5, 'x', [], [{}], true])('a document that is not a mapping is rejected: %j', (input) => {
    expect(faults(input)).toEqual([{ path: '', message: expect.any(String) as unknown }]);
  });

  test('a document that is nested too deep is rejected', () => {
    let input: unknown = 1;
    for (let i = 0; i < 100_000; i++) input = [input];
    expect(faults(job({ params: { x: input } }))[0]?.message).toContain('nested deeper than 64');
    const circle: unknown[] = [];
    circle.push(circle, circle);
    expect(faults(job({ params: { x: circle } }))).toHaveLength(1);
  });

  test('an alias bomb is rejected', () => {
    let input: unknown = ['x'];
    for (let i = 0; i < 30; i++) input = [input, input, input, input];
    expect(faults(job({ params: { x: input } })).at(-1)?.message).toContain('is too large');
  });

  test('a document cannot change a prototype', () => {
    const input = JSON.parse('{"project": "p", "name": "j", "params": {"__proto__": {"x": 1}}}') as unknown;
    expect(faults(input)).toEqual([{ path: 'params.__proto__', message: 'is not a name that may be used' }]);
  });

  test('the number of listed faults, and the time to find them, are bounded', () => {
    const names = Array.from({ length: 1_900 }, (_, i) => ({
      name: `task ${i}`,
      depends: [`task/tusk ${i}`, 'x'],
      [`f${i}`]: 1,
    }));
    const began = performance.now();
    const found = faults(job({ tasks: names }));
    expect(found).toHaveLength(101);
    expect(found.at(-1)?.message).toMatch(/^has more than 100 faults/);
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  test.each([
    ['tasks', 'must not have more than 2000 entries', { tasks: Array.from({ length: 2_001 }, () => ({})) }],
    ['triggers', 'must not have more than 1000 entries', { triggers: Array.from({ length: 1_001 }, () => ({})) }],
    ['tasks', 'have 10001 references', { tasks: [{ name: 'a', depends: Array.from({ length: 10_001 }, () => 'x') }] }],
    ['', 'is too large: more than 100000 values', { params: { x: Array.from({ length: 100_001 }, () => 1) } }],
    [
      'tasks[1]',
      'takes 262177 bytes',
      { tasks: [{ name: 'a' }, { name: 'b', function: { name: 'f', input: 'x'.repeat(262_130) } }] },
    ],
    ['params', 'take 262154 bytes as JSON; at most 262144 are allowed', { params: { x: 'é'.repeat(131_073) } }],
  ])('a document that exceeds a limit is rejected with a path: %s %s', (path, message, more) => {
    expect(faults(job(more))).toEqual([{ path, message: expect.stringContaining(message) as unknown }]);
  });

  test.each(['json', 'yaml'] as const)('a number that cannot be stored exactly is rejected: %s', (format) => {
    const text = '{"project": "p", "name": "j", "params": {"x": [12345678901234567890], "y": 1e400, "z": 1e15}}';
    const parsed = parseJobText(text, format);
    expect(parsed.ok ? [] : parsed.faults).toEqual([
      { path: 'params.x[0]', message: expect.stringContaining('no longer exact') as unknown },
      { path: 'params.y', message: expect.stringContaining('finite') as unknown },
    ]);
  });

  test('a document that was applied before these limits existed can still be read', () => {
    const tasks = Array.from({ length: 2_001 }, (_, i) => ({ name: `t${i}` }));
    expect(parseJob(job({ tasks, params: { x: 'x'.repeat(300_000) } }), storedLimits).ok).toBe(true);
  });

  test('any input yields a result', () => {
    const keys = fc.constantFrom(
      'project',
      'name',
      'tasks',
      'triggers',
      'depends',
      'docker',
      'env',
      'retry',
      'on',
      'cron',
      'start',
      'x',
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        fc.constantFrom('a', '1d', 'task/a', '@daily', '\u0000', start),
        fc.anything(),
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(keys, tie('tree')),
      ),
    }));
    fc.assert(
      fc.property(fc.dictionary(keys, tree), (input) => {
        const parsed = parseJob(input);
        if (!parsed.ok) expect(parsed.faults.length).toBeGreaterThan(0);
      }),
      { numRuns: 200 },
    );
  });
});
