/** The visible rows or columns of a long list: a window of items of one size, with a few more at both ends. */
export interface Range {
  readonly first: number;
  /** Not in it any more. */
  readonly end: number;
}

interface Sight {
  readonly scroll: number;
  readonly room: number;
  readonly size: number;
  readonly count: number;
  readonly more: number;
}

/**
 * In steps of `more`, so that a small scroll changes nothing. Wherever it is, it is equally long (but for the ends of
 * the list), so that what was drawn for one place can be used again for another.
 */
export function inSight({ scroll, room, size, count, more }: Sight): Range {
  const step = Math.max(1, more);
  const first = Math.floor(Math.max(0, scroll) / size / step) * step - step;
  const end = Math.min(count, Math.max(0, first) + windowLength({ room, size, more }));
  return { first: Math.max(0, Math.min(first, count)), end: Math.max(0, end) };
}

/** Room at the front and at the back, and one step for a scroll that stands between two. */
export function windowLength({ room, size, more }: Pick<Sight, 'room' | 'size' | 'more'>): number {
  return Math.ceil(Math.max(0, room) / size) + 3 * Math.max(1, more);
}

/** How far to scroll so that an item is fully in sight; where it is already, as it was. */
export function scrollTo(item: number, { scroll, room, size }: Pick<Sight, 'scroll' | 'room' | 'size'>): number {
  if (item * size < scroll) return item * size;
  return (item + 1) * size > scroll + room ? (item + 1) * size - room : scroll;
}
