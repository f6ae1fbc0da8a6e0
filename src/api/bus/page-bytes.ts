/** Bounds a page by its bytes, because the limit of items does not bound the length of their texts. */

/** About a megabyte of JSON. */
const maxPageBytes = 1024 * 1024;

/**
 * A page of rows, of which one more than `limit` was read. `next` is the cursor of the last item; null: there are no more. The
 * page has at least one item, however long it is.
 */
export function cutPage<Row, Item>(
  rows: readonly Row[],
  limit: number,
  render: (row: Row) => Item,
  cursorOf: (row: Row) => string,
  maxBytes = maxPageBytes,
): { items: Item[]; next: string | null } {
  const items: Item[] = [];
  let bytes = 0;
  let last: Row | undefined;
  for (const row of rows.slice(0, limit)) {
    const item = render(row);
    bytes += JSON.stringify(item).length;
    if (items.length > 0 && bytes > maxBytes) break;
    items.push(item);
    last = row;
  }
  const isWhole = items.length === rows.length;
  return { items, next: isWhole || last === undefined ? null : cursorOf(last) };
}
