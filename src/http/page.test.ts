import { describe, expect, it } from 'vitest';
import { collectPages } from './client.ts';
import { cutPage } from './page.ts';

const rows = ['a', 'b', 'c', 'd'];
const cut = (from: readonly string[], limit: number, maxBytes?: number) =>
  cutPage(from, { limit, render: (row) => row.repeat(10), cursorOf: (row) => row, ...(maxBytes ? { maxBytes } : {}) });

describe('a page', () => {
  it('ends after as many items as were asked for, and says where it goes on', () => {
    expect(cut(rows, 2)).toEqual({ items: ['aaaaaaaaaa', 'bbbbbbbbbb'], next: 'b' });
    expect(cut(rows, 4)).toMatchObject({ next: null });
  });

  it('ends before its items take more bytes than allowed', () => {
    expect(cut(rows, 4, 25)).toEqual({ items: ['aaaaaaaaaa', 'bbbbbbbbbb'], next: 'b' });
  });

  it('has one item even where that is too large', () => {
    expect(cut(rows, 4, 5)).toEqual({ items: ['aaaaaaaaaa'], next: 'a' });
    expect(cut(['d'], 4, 5)).toEqual({ items: ['dddddddddd'], next: null });
  });

  it('is followed to the end of the list', async () => {
    const asked: (string | undefined)[] = [];
    const all = await collectPages(async (cursor, limit) => {
      asked.push(cursor);
      return cut(rows.filter((row) => row > (cursor ?? '')).slice(0, limit + 1), limit, 25);
    });
    expect(all).toEqual(rows.map((row) => row.repeat(10)));
    expect(asked).toEqual([undefined, 'b']);
  });

  it('is the last one that is read when no more items are wanted', async () => {
    const some = await collectPages(async (_, limit) => cut(rows, limit), 3);
    expect(some).toHaveLength(3);
  });
});
