/**
 * Keeps visible rows in place when newer rows are added above them. At the very top, new rows push the others down, as a user
 * who follows the newest rows expects.
 */
import { type RefObject, useLayoutEffect, useRef } from 'react';
import { rowHeight } from './grid-row.tsx';

interface Options {
  readonly box: RefObject<HTMLElement | null>;
  /** How many rows are known to be newer than the time that the grid was opened at. */
  readonly newer: number;
  readonly newestOnTop: boolean;
  /** Opened at the newest, and not at a time. */
  readonly follow: boolean;
  /** Rows have moved down by that many. */
  readonly onShift: (rows: number) => void;
  /** The box was scrolled. */
  readonly onScroll: () => void;
}

export function useSteadyRows({ box, newer, newestOnTop, follow, onShift, onScroll }: Options): void {
  const before = useRef({ newer: 0, newestOnTop: false });
  useLayoutEffect(() => {
    const shift = newer - before.current.newer;
    const mayFollow = follow || before.current.newestOnTop;
    before.current = { newer, newestOnTop };
    const { current } = box;
    if (shift === 0 || current === null) return;
    onShift(shift);
    if (mayFollow && current.scrollTop === 0) return;
    current.scrollTop += shift * rowHeight;
    onScroll();
  });
}
