/**
 * Cuts rows to one page of a list: at most the requested number of items, and at most 1 MiB of JSON, unless a single item is
 * larger.
 *
 * 1. A page has at least one item, so that following `next` always ends.
 * 2. `next` is null only on the last page. A list read by its pages is complete.
 */

/** Maximum bytes of JSON in the items of a page. 1 MiB is written and read in about 5 ms. */
const maxPageBytes = 1024 * 1024;

interface Cut<Row, Item> {
  readonly limit: number;
  readonly render: (row: Row) => Item;
  /** The cursor of the page that follows this row. */
  readonly cursorOf: (row: Row) => string;
  readonly maxBytes?: number;
}

/** If further pages exist, `rows` must hold at least one row more than `limit`. */
export function cutPage<Row, Item>(
  rows: readonly Row[],
  { limit, render, cursorOf, maxBytes = maxPageBytes }: Cut<Row, Item>,
): { items: Item[]; next: string | null } {
  const items: Item[] = [];
  let bytes = 0;
  let last: Row | undefined;
  for (const row of rows) {
    const item = render(row);
    bytes += Buffer.byteLength(JSON.stringify(item));
    const isFull = items.length === limit || bytes > maxBytes;
    if (isFull && last !== undefined) return { items, next: cursorOf(last) };
    items.push(item);
    last = row;
  }
  return { items, next: null };
}
