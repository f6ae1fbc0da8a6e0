/** Splits a list into consecutive pieces of a bounded size; the last piece may be smaller. */
export function splitInto<T>(maxSize: number, items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / maxSize) }, (_, i) =>
    items.slice(i * maxSize, (i + 1) * maxSize),
  );
}
