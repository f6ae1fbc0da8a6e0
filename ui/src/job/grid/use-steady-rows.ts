/**
 * Keeps what is read in its place when rows come in above it. At the very top new rows push the others down, as one
 * expects who looks at the newest.
 */
import { type RefObject, useLayoutEffect, useRef } from 'react';
import { rowHeight } from './grid-row.tsx';
import type { GridPages } from './use-grid-pages.ts';

interface Options {
  readonly box: RefObject<HTMLElement | null>;
  readonly pages: GridPages;
  /** The first row in sight. */
  readonly top: number;
  /** Rows have moved down by that many. */
  readonly onShift: (rows: number) => void;
}

export function useSteadyRows({ box, pages, top, onShift }: Options): void {
  const held = useRef<{ readonly instant: string; readonly row: number } | undefined>(undefined);
  const wasOnTop = useRef(false);
  useLayoutEffect(() => {
    const row = held.current === undefined ? undefined : pages.rowOf(held.current.instant);
    const shift = row === undefined || held.current === undefined ? 0 : row - held.current.row;
    if (shift !== 0) {
      onShift(shift);
      const { current } = box;
      const follows = current?.scrollTop === 0 && wasOnTop.current;
      if (current !== null && !follows) current.scrollTop += shift * rowHeight;
    }
    wasOnTop.current = pages.newestOnTop;
    const first = shift === 0 ? top : top + shift;
    const item = pages.itemAt(first);
    held.current = item === undefined ? undefined : { instant: item.instant, row: first };
  });
}
