/** Lists that come a page at a time, read to their end or to as many items as are wanted. The CLI and the web interface use it. */

/** The most that a list answers at once. */
const largestPage = 1_000;

export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null;
}

/** Follows `next` until it is null. */
export async function collectPages<T>(
  fetchPage: (cursor: string | undefined, limit: number) => Promise<Page<T>>,
  most: number = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const all: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await fetchPage(cursor, Math.min(largestPage, most - all.length));
    // no spread into push: a list may be longer than the arguments that a call can have
    for (const item of page.items) all.push(item);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined && all.length < most);
  return all.slice(0, most);
}

/** The page in an answer of a list that, for Waterwheel's callers, is a bare array as well. An older server knows no other. */
export function pageIn<T>(answer: readonly T[] | Page<T>): Page<T> {
  return 'items' in answer ? answer : { items: answer, next: null };
}

/** Waterwheel's lists are bare arrays, and some have pages: the name of the last item leads to the next one. */
export function pageAfterLast<T extends { name: string }>(items: readonly T[], limit: number): Page<T> {
  return { items, next: items.length < limit ? null : (items.at(-1)?.name ?? null) };
}
