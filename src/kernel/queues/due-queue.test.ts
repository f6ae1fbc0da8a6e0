import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DueQueue } from './due-queue.ts';

const due = (id: string, dueMs: number) => ({ id, dueMs });

describe('queue of due entries', () => {
  it('popDue returns due entries, earliest first, at most `max`', () => {
    const queue = new DueQueue<ReturnType<typeof due>>();
    for (const [id, at] of [
      ['c', 3],
      ['a', 1],
      ['d', 4],
      ['b', 2],
    ] as const)
      queue.push(due(id, at));
    expect(queue.peek()?.id).toBe('a');
    expect(queue.popDue(3, 2).map((entry) => entry.id)).toEqual(['a', 'b']);
    expect(queue.popDue(3, 9).map((entry) => entry.id)).toEqual(['c']);
    expect(queue.popDue(3, 9)).toEqual([]);
    expect(queue.size).toBe(1);
  });

  it('a new entry of an id replaces the old one, and a removed one is never returned', () => {
    const queue = new DueQueue<ReturnType<typeof due>>();
    queue.push(due('a', 1));
    queue.push(due('a', 5));
    queue.push(due('b', 2));
    queue.remove('b');
    queue.remove('unknown');
    expect(queue.popDue(4, 9)).toEqual([]);
    expect(queue.popDue(5, 9).map((entry) => entry.dueMs)).toEqual([5]);
    expect(queue.peek()).toBeUndefined();
  });

  it('the queue does not grow although entries are replaced for ever', () => {
    const queue = new DueQueue<ReturnType<typeof due>>();
    queue.push(due('a', 1));
    for (let n = 0; n < 50_000; n++) queue.push(due('b', 1_000_000 - n));
    expect(queue.held).toBeLessThan(2_000);
    expect(queue.size).toBe(2);
    expect(queue.popDue(2_000_000, 9).map((entry) => entry.dueMs)).toEqual([1, 950_001]);
  });

  it('first() returns the earliest entries without removing them, and reads a bounded number of entries', () => {
    const queue = new DueQueue<ReturnType<typeof due>>();
    for (let n = 5_000; n > 0; n--) queue.push(due(String(n), n));
    expect(queue.first(3).map((entry) => entry.id)).toEqual(['1', '2', '3']);
    expect([queue.size, queue.peek()?.id]).toEqual([5_000, '1']);
    expect(queue.first(5_000)).toHaveLength(1_000);
    for (let n = 1; n <= 2_000; n++) queue.remove(String(n));
    expect(queue.first(3)).toEqual([]);
    expect(new DueQueue<ReturnType<typeof due>>().first(3)).toEqual([]);
  });

  it('the queue behaves like a sorted list under any sequence of operations', () => {
    const step = fc.oneof(
      fc.record({
        kind: fc.constant('push' as const),
        id: fc.integer({ min: 0, max: 20 }),
        at: fc.integer({ min: 0, max: 50 }),
      }),
      fc.record({ kind: fc.constant('remove' as const), id: fc.integer({ min: 0, max: 20 }), at: fc.constant(0) }),
      fc.record({
        kind: fc.constant('pop' as const),
        id: fc.integer({ min: 1, max: 5 }),
        at: fc.integer({ min: 0, max: 50 }),
      }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const queue = new DueQueue<ReturnType<typeof due>>();
        const model = new Map<string, number>();
        for (const { kind, id, at } of steps) {
          if (kind === 'push') {
            queue.push(due(String(id), at));
            model.set(String(id), at);
          } else if (kind === 'remove') {
            queue.remove(String(id));
            model.delete(String(id));
          } else {
            const expected = [...model.values()]
              .filter((dueMs) => dueMs <= at)
              .toSorted((a, b) => a - b)
              .slice(0, id);
            const popped = queue.popDue(at, id);
            expect(popped.map((entry) => entry.dueMs)).toEqual(expected);
            for (const entry of popped) model.delete(entry.id);
          }
          expect(queue.size).toBe(model.size);
          const [least] = [...model.values()].toSorted((a, b) => a - b);
          expect(queue.peek()?.dueMs).toBe(least);
          const earliest = [...model.values()].toSorted((a, b) => a - b).slice(0, 7);
          expect(queue.first(7).map((entry) => entry.dueMs)).toEqual(earliest);
        }
      }),
    );
  });
});
