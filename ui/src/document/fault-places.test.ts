import { describe, expect, test } from 'vitest';
import { parsePath, placeFault, readText } from './fault-places.ts';

const text = `project: shop
name: nightly
tasks:
  - name: export
    depends: [trigger/daily, task/none]
    env:
      A B: 3
  - name: send
    process:
      command:
        - echo
        - 7
`;

function shown(path: string): [line: number, text: string] {
  const { from, to, line } = placeFault(text, readText(text).document, { path, message: '' });
  return [line, text.slice(from, to)];
}

test('parsePath reads paths as the server writes them', () => {
  expect(parsePath('tasks[2].depends[0]')).toEqual(['tasks', 2, 'depends', 0]);
  expect(parsePath('tasks[0].env["A \\"B\\" ]"].x-y')).toEqual(['tasks', 0, 'env', 'A "B" ]', 'x-y']);
  expect(parsePath('')).toEqual([]);
});

describe('placeFault', () => {
  test('a fault is placed at the value it names', () => {
    expect(shown('name')).toEqual([2, 'nightly']);
    expect(shown('tasks[0].depends[1]')).toEqual([5, 'task/none']);
    expect(shown('tasks[0].env["A B"]')).toEqual([7, '3']);
    expect(shown('tasks[1].process.command[1]')).toEqual([12, '7']);
  });

  test('a fault of a list or mapping is placed at its name', () => {
    expect(shown('tasks')).toEqual([3, 'tasks']);
    expect(shown('tasks[1].process')).toEqual([9, 'process']);
  });

  test('a fault of a missing field is placed where the field should be', () => {
    expect(shown('tasks[1].process.cwd.x')).toEqual([9, 'process']);
    expect(shown('tasks[0].nothing')).toEqual([4, 'name: export']);
    expect(shown('nothing')).toEqual([1, 'p']);
  });

  test('a fault is placed at a key that was shortened in the path', () => {
    const long = `params:\n  ${'k'.repeat(70)}: 1\n`;
    const { line } = placeFault(long, readText(long).document, { path: `params.${'k'.repeat(60)}…`, message: '' });
    expect(line).toBe(2);
  });
});

test('readText reports where a text is not valid YAML', () => {
  const { faults } = readText('name: a\ntasks: [1, 2\nother: {');
  expect(faults.length).toBeGreaterThan(0);
  expect(faults.every((fault) => fault.line >= 2 && fault.message !== '')).toBe(true);
  expect(readText(text).faults).toEqual([]);
});
