/**
 * The rows of the grid as a chain of pages around one time, newest first. Those before it are asked for by `after`, those
 * behind it by `before`, each by where its neighbour ended. So a page's name stays the same however many instants come
 * in on top, and only pages in sight are ever read again.
 *
 * How many rows a page has is known once it was read; pages further back are thought to be as long as `assumed`, and
 * one that may hold newer rows is empty until it is read.
 */
export interface Page {
  readonly side: 'newer' | 'older';
  readonly cursor: string;
  /** How many it is asked for. */
  readonly limit: number;
  readonly count: number | undefined;
}

export type Chain = readonly Page[];

interface Answer {
  readonly items: readonly unknown[];
  readonly older: string | null;
  readonly newer: string | null;
}

/** Pages near the current time are small, because they are read again most often. Distant ones are large, for long scrolls. */
const nearRows = 100;
const farRows = 200;

/** Rows up to and including `at` come first behind it. */
export function begin(at: number): Chain {
  return [
    { side: 'newer', cursor: new Date(at).toISOString(), limit: nearRows, count: undefined },
    { side: 'older', cursor: new Date(at + 1).toISOString(), limit: nearRows, count: undefined },
  ];
}

function rowsOf({ side, count }: Page, assumed: number): number {
  return count ?? (side === 'older' ? assumed : 0);
}

/** As long as the last that was read: there are fewer instants in one where there are many tasks. */
function assumedRows(chain: Chain): number {
  return chain.findLast(({ side, count }) => side === 'older' && count !== undefined && count > 0)?.count ?? nearRows;
}

export function totalRows(chain: Chain): number {
  const assumed = assumedRows(chain);
  return chain.reduce((sum, page) => sum + rowsOf(page, assumed), 0);
}

export function newerRows(chain: Chain): number {
  return chain.reduce((sum, { side, count = 0 }) => sum + (side === 'newer' ? count : 0), 0);
}

interface PageInSight {
  readonly index: number;
  readonly page: Page;
  /** The index of its first row. */
  readonly row: number;
}

/** Pages that hold any of the rows, empty ones at their edges included. */
export function pagesInSight(chain: Chain, first: number, end: number): PageInSight[] {
  const assumed = assumedRows(chain);
  let row = 0;
  return chain.flatMap((page, index) => {
    const start = row;
    row += rowsOf(page, assumed);
    return start <= end && row >= first ? [{ index, page, row: start }] : [];
  });
}

/** Adds the length of a page and the beginning of the next one. Returns the same chain if nothing has changed. */
export function learn(chain: Chain, page: Page, answer: Answer): Chain {
  const index = chain.indexOf(page);
  if (index === -1) return chain;
  const count = answer.items.length;
  const known = page.count === count ? chain : chain.with(index, { ...page, count });
  const next = page.side === 'older' ? answer.older : answer.newer;
  const beside = index + (page.side === 'older' ? 1 : -1);
  const neighbour = known[beside];
  if (next === null) return neighbour === undefined ? known : cutFrom(known, index, page.side);
  if (neighbour?.cursor === next) return known;
  const fresh: Page = { side: page.side, cursor: next, limit: farRows, count: neighbour?.count };
  if (neighbour !== undefined) return known.with(beside, fresh);
  return page.side === 'older' ? [...known, fresh] : [fresh, ...known];
}

/** That page is now the last one. */
function cutFrom(chain: Chain, index: number, side: Page['side']): Chain {
  return side === 'older' ? chain.slice(0, index + 1) : chain.slice(index);
}

/** Whether the first row there is stands at the top of the chain. */
export function reachesNewest(chain: Chain): boolean {
  return chain[0]?.count !== undefined;
}

/** Whether it is known how many rows there are. */
export function reachesOldest(chain: Chain): boolean {
  return chain.at(-1)?.count !== undefined;
}
