/**
 * Cuts rows to one page of a list: at most as many as were asked for, and at most a megabyte of JSON, whatever the rows hold.
 *
 * 1. A page has at least one item, so that following `next` always ends.
 * 2. `next` is null only on the last page. A list read by its pages is complete.
 */

/** Bytes of JSON in the items of a page. 1 MiB is written and read in about 5 ms. */
const maxPageBytes = 1024 * 1024;

interface Cut<Row, Item> {
  readonly limit: number;
  readonly render: (row: Row) => Item;
  /** Where the page that ends with this row goes on. */
  readonly cursorOf: (row: Row) => string;
  readonly maxBytes?: number;
}

/** `rows` holds one row more than `limit` where there are more. */
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
