import { describe, expect, it } from 'vitest';
import { isId, newId } from './id.ts';

describe('newId and isId', () => {
  it('an id is a UUID of version 7 that contains its time', () => {
    const at = Date.now() + 1_000_000;
    const id = newId(at);
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(at);
  });

  it('ids sort in the order of creation, even within a millisecond and after the clock was set back', () => {
    const at = Date.now() + 2_000_000;
    const ids = Array.from({ length: 20_000 }, (_, i) => newId(i < 15_000 ? at : at - 5_000));
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.toSorted()).toEqual(ids);
  });

  it('isId accepts ids and rejects other texts', () => {
    expect(isId(newId())).toBe(true);
    expect(isId(newId().toUpperCase())).toBe(true);
    for (const text of ['', 'x', `${newId()}0`, `{${newId()}}`, newId().replaceAll('-', ''), `${newId()}\n`])
      expect(isId(text)).toBe(false);
  });
});
