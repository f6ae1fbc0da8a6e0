import { describe, expect, it } from 'vitest';
import { changesBetween } from './changes.ts';

describe('the difference between two documents', () => {
  it('equal documents have no changes, whatever the order of fields', () => {
    expect(changesBetween({ a: 1, b: { c: [1] } }, { b: { c: [1] }, a: 1 })).toEqual([]);
  });

  it('each path that was added, removed or changed is listed with both values', () => {
    expect(changesBetween({ a: 1, b: 2, c: { d: 3 } }, { a: 1, c: { d: 4 }, e: 5 })).toEqual([
      { path: 'b', change: 'removed', before: 2 },
      { path: 'c.d', change: 'changed', before: 3, after: 4 },
      { path: 'e', change: 'added', after: 5 },
    ]);
  });

  it('triggers and tasks are identified by name, so moving one is no change', () => {
    const [a, b] = [
      { name: 'a', x: 1 },
      { name: 'b', x: 1 },
    ];
    expect(changesBetween({ tasks: [a, b] }, { tasks: [b, a] })).toEqual([]);
    expect(changesBetween({ tasks: [a, b] }, { tasks: [{ ...b, x: 2 }] })).toEqual([
      { path: 'tasks.a', change: 'removed', before: a },
      { path: 'tasks.b.x', change: 'changed', before: 1, after: 2 },
    ]);
  });

  it('names that every object inherits are compared like others', () => {
    for (const name of ['constructor', '__proto__', 'toString']) {
      const task = { name };
      expect(changesBetween({ tasks: [] }, { tasks: [task] })).toEqual([
        { path: `tasks.${name}`, change: 'added', after: task },
      ]);
      expect(changesBetween({ tasks: [task] }, { tasks: [] })).toEqual([
        { path: `tasks.${name}`, change: 'removed', before: task },
      ]);
      expect(changesBetween({ tasks: [task] }, { tasks: [task] })).toEqual([]);
    }
  });

  it('a new document is added as a whole', () => {
    expect(changesBetween(undefined, { a: 1 })).toEqual([{ path: '', change: 'added', after: { a: 1 } }]);
  });
});
