import { describe, expect, it } from 'vitest';
import { collectPages } from './client.ts';
import { cutPage } from './page.ts';

const rows = ['a', 'b', 'c', 'd'];
const cut = (from: readonly string[], limit: number, maxBytes?: number) =>
  cutPage(from, { limit, render: (row) => row.repeat(10), cursorOf: (row) => row, ...(maxBytes ? { maxBytes } : {}) });

describe('pages of a list', () => {
  it('a page ends after the requested number of items, and gives the cursor of the next page', () => {
    expect(cut(rows, 2)).toEqual({ items: ['aaaaaaaaaa', 'bbbbbbbbbb'], next: 'b' });
    expect(cut(rows, 4)).toMatchObject({ next: null });
  });

  it('a page ends before its items exceed the byte limit', () => {
    expect(cut(rows, 4, 25)).toEqual({ items: ['aaaaaaaaaa', 'bbbbbbbbbb'], next: 'b' });
  });

  it('a page has one item even if that item exceeds the byte limit', () => {
    expect(cut(rows, 4, 5)).toEqual({ items: ['aaaaaaaaaa'], next: 'a' });
    expect(cut(['d'], 4, 5)).toEqual({ items: ['dddddddddd'], next: null });
  });

  it('collectPages reads all pages of a list', async () => {
    const asked: (string | undefined)[] = [];
    const all = await collectPages(async (cursor, limit) => {
      asked.push(cursor);
      return cut(rows.filter((row) => row > (cursor ?? '')).slice(0, limit + 1), limit, 25);
    });
    expect(all).toEqual(rows.map((row) => row.repeat(10)));
    expect(asked).toEqual([undefined, 'b']);
  });

  it('collectPages stops when it has the requested number of items', async () => {
    const some = await collectPages(async (_, limit) => cut(rows, limit), 3);
    expect(some).toHaveLength(3);
  });
});
