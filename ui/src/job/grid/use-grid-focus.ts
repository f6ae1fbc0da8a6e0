/**
 * One cell of the grid is where Tab leads to; arrow keys, Home, End, Page Up and Page Down move it, and Enter opens it.
 * Rows come and go while one scrolls, so it is kept by its numbers: row, and column with 0 for the head of the row.
 */
import { type KeyboardEvent, type RefObject, type SyntheticEvent, useLayoutEffect, useRef, useState } from 'react';
import { scrollTo } from './window.ts';

export interface Place {
  readonly row: number;
  readonly column: number;
}

interface Options {
  readonly box: RefObject<HTMLElement | null>;
  readonly rows: number;
  readonly columns: number;
  readonly rowHeight: number;
  readonly columnWidth: number;
  /** The area of the cells, without the heads of the table and of the rows. */
  readonly room: { readonly width: number; readonly height: number };
  readonly open: (place: Place) => void;
}

export function useGridFocus(options: Options) {
  const { box, rows, columns, rowHeight, columnWidth, room, open } = options;
  const [place, setPlace] = useState<Place>({ row: 0, column: 1 });
  const wanted = useRef(false);

  useLayoutEffect(() => {
    const { current } = box;
    if (current === null) return;
    const cell = current.querySelector<HTMLElement>(`[data-row="${place.row}"] > [data-col="${place.column}"]`);
    if (wanted.current && cell !== null) {
      wanted.current = false;
      cell.focus({ preventScroll: true });
    } else if (isCell(document.activeElement, current) && document.activeElement !== cell) {
      // its element shows another row by now
      current.focus({ preventScroll: true });
    }
  });

  const go = (next: Place): void => {
    const { current } = box;
    if (current === null) return;
    const row = Math.max(0, Math.min(rows - 1, next.row));
    const column = Math.max(0, Math.min(columns, next.column));
    wanted.current = true;
    setPlace({ row, column });
    current.scrollTop = scrollTo(row, { scroll: current.scrollTop, room: room.height, size: rowHeight });
    if (column > 0) {
      const sight = { scroll: current.scrollLeft, room: room.width, size: columnWidth };
      current.scrollLeft = scrollTo(column - 1, sight);
    }
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.metaKey) return;
    const screen = Math.max(1, Math.floor(room.height / rowHeight) - 1);
    if (event.key === 'Enter' || event.key === ' ') open(place);
    else {
      const next = moves[event.key]?.(place, { screen, rows, columns, far: event.ctrlKey });
      if (next === undefined) return;
      go(next);
    }
    event.preventDefault();
  };
  return {
    place,
    shift: (by: number) => setPlace((old) => ({ ...old, row: old.row + by })),
    handlers: {
      onKeyDown,
      onFocus: (event: SyntheticEvent) => setPlace((old) => placeAt(event.target) ?? old),
      onClick: (event: SyntheticEvent) => {
        const at = placeAt(event.target);
        if (at !== undefined) open(at);
      },
    },
  };
}

interface Bounds {
  readonly screen: number;
  readonly rows: number;
  readonly columns: number;
  readonly far: boolean;
}

const moves: Readonly<Record<string, (from: Place, bounds: Bounds) => Place>> = {
  ArrowUp: ({ row, column }) => ({ row: row - 1, column }),
  ArrowDown: ({ row, column }) => ({ row: row + 1, column }),
  ArrowLeft: ({ row, column }) => ({ row, column: column - 1 }),
  ArrowRight: ({ row, column }) => ({ row, column: column + 1 }),
  PageUp: ({ row, column }, { screen }) => ({ row: row - screen, column }),
  PageDown: ({ row, column }, { screen }) => ({ row: row + screen, column }),
  Home: ({ row }, { far }) => ({ row: far ? 0 : row, column: 0 }),
  End: ({ row }, { rows, columns, far }) => ({ row: far ? rows - 1 : row, column: columns }),
};

function isCell(element: Element | null, box: HTMLElement): boolean {
  return element instanceof HTMLElement && box.contains(element) && element.dataset['col'] !== undefined;
}

/** The cell of an event; undefined outside of cells. */
function placeAt(target: EventTarget): Place | undefined {
  const cell = target instanceof Element ? target.closest<HTMLElement>('[data-col]') : null;
  const row = cell?.closest<HTMLElement>('[data-row]')?.dataset['row'];
  return cell === null || row === undefined ? undefined : { row: Number(row), column: Number(cell.dataset['col']) };
}
