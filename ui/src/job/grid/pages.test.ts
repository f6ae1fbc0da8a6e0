import { expect, test } from 'vitest';
import { begin, type Chain, learn, pagesInSight, reachesNewest, totalRows } from './pages.ts';
import { inSight, scrollTo } from './window.ts';

const answer = (count: number, older: string | null, newer: string | null = null) => ({
  items: Array.from({ length: count }),
  older,
  newer,
});

/** Teaches the page at an index. */
function taught(chain: Chain, index: number, ...rest: Parameters<typeof answer>): Chain {
  const page = chain[index];
  if (page === undefined) throw new Error(`no page ${index}`);
  return learn(chain, page, answer(...rest));
}

const at = Date.parse('2026-03-01T00:00:00Z');

test('a chain begins with the instants before and after a time, which itself is on one side only', () => {
  expect(begin(at).map(({ side, cursor }) => `${side} ${cursor}`)).toEqual([
    'newer 2026-03-01T00:00:00.000Z',
    'older 2026-03-01T00:00:00.001Z',
  ]);
});

test('a page that was read says how long it is and where the next begins, until there is none', () => {
  let chain = taught(begin(at), 1, 100, 'a');
  expect(totalRows(chain)).toBe(200);
  expect(chain.at(-1)).toEqual({ side: 'older', cursor: 'a', limit: 200, count: undefined });
  chain = taught(chain, 2, 30, null);
  expect(totalRows(chain)).toBe(130);
});

test('the same answer again changes nothing, so that nothing is drawn anew', () => {
  const chain = taught(begin(at), 1, 100, 'a');
  expect(taught(chain, 1, 100, 'a')).toBe(chain);
});

test('newer rows come in on top, and a full page begins another above it', () => {
  let chain = taught(begin(at), 1, 50, null);
  expect(reachesNewest(chain)).toBe(false);
  chain = taught(chain, 0, 3, null);
  expect([totalRows(chain), reachesNewest(chain)]).toEqual([53, true]);
  chain = taught(chain, 0, 100, null, 'b');
  expect(chain[0]).toEqual({ side: 'newer', cursor: 'b', limit: 200, count: undefined });
  expect([totalRows(chain), reachesNewest(chain)]).toEqual([150, false]);
});

test('a page that ends elsewhere than before moves the beginning of the next, and one that ends all cuts the rest', () => {
  let chain = taught(taught(begin(at), 1, 100, 'a'), 2, 100, 'b');
  chain = taught(chain, 1, 100, 'a2');
  expect(chain.map(({ cursor }) => cursor).slice(2)).toEqual(['a2', 'b']);
  expect(totalRows(chain)).toBe(300);
  expect(taught(chain, 1, 40, null)).toHaveLength(2);
});

test('pages with fewer rows are thought to go on so', () => {
  const chain = taught(begin(at), 1, 10, 'a');
  expect(totalRows(chain)).toBe(20);
});

test('only pages that hold rows in sight are asked for, and the empty one on top at the top', () => {
  let chain = begin(at);
  for (let i = 1; i < 6; i++) chain = taught(chain, i, 100, `c${i}`);
  const indexes = (first: number, end: number) => pagesInSight(chain, first, end).map(({ index }) => index);
  expect(indexes(0, 40)).toEqual([0, 1]);
  expect(indexes(210, 260)).toEqual([3]);
  expect(indexes(290, 320)).toEqual([3, 4]);
  expect(pagesInSight(chain, 290, 320)[1]?.row).toBe(300);
});

test('the window holds the visible items and a few more, within the list', () => {
  const sight = { room: 260, size: 26, count: 1_000, more: 4 };
  expect(inSight({ ...sight, scroll: 0 })).toEqual({ first: 0, end: 22 });
  expect(inSight({ ...sight, scroll: 2_600 })).toEqual({ first: 96, end: 118 });
  expect(inSight({ ...sight, scroll: 2_600 + 4 * 26 - 1 })).toEqual({ first: 96, end: 118 });
  expect(inSight({ ...sight, scroll: 2_600 + 4 * 26 })).toEqual({ first: 100, end: 122 });
  expect(inSight({ ...sight, scroll: 26_000 - 260 })).toEqual({ first: 984, end: 1_000 });
  expect(inSight({ ...sight, scroll: 99_999, count: 3 })).toEqual({ first: 3, end: 3 });
});

test('an item is scrolled to no further than needed', () => {
  const sight = { scroll: 100, room: 100, size: 10 };
  expect([scrollTo(5, sight), scrollTo(12, sight), scrollTo(30, sight)]).toEqual([50, 100, 210]);
});
