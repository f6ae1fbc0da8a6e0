import { describe, expect, it } from 'vitest';
import { isId, newId } from './id.ts';

describe('ids', () => {
  it('are UUIDs of version 7 that carry their time', () => {
    const at = Date.now() + 1_000_000;
    const id = newId(at);
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(at);
  });

  it('sort in the order they were made, within a millisecond and when the clock goes back, too', () => {
    const at = Date.now() + 2_000_000;
    const ids = Array.from({ length: 20_000 }, (_, i) => newId(i < 15_000 ? at : at - 5_000));
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.toSorted()).toEqual(ids);
  });

  it('are known from other texts', () => {
    expect(isId(newId())).toBe(true);
    expect(isId(newId().toUpperCase())).toBe(true);
    for (const text of ['', 'x', `${newId()}0`, `{${newId()}}`, newId().replaceAll('-', ''), `${newId()}\n`])
      expect(isId(text)).toBe(false);
  });
});
