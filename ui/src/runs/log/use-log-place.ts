/** The position in a log: at the end while following, otherwise where the user scrolled or jumped to. */
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react';
import type { LogStore } from './log-store.ts';
import {
  endOf,
  fewRows,
  type Frame,
  isAtEnd,
  type Place,
  placeAt,
  placeOfRow,
  scrolled,
  stretchPx,
} from './log-window.ts';

const settleMs = 200;

interface Size {
  readonly windowPx: number;
  readonly linePx: number;
  readonly columns: number;
}

export interface LogPlace {
  readonly box: RefObject<HTMLDivElement | null>;
  readonly probe: RefObject<HTMLSpanElement | null>;
  readonly frame: Frame;
  readonly place: Place;
  readonly linePx: number;
  readonly follows: boolean;
  /** If false, the position does not change. */
  readonly setFollows: (follows: boolean) => void;
  readonly goTo: (row: number) => void;
  readonly onScroll: () => void;
  /** How high rows that wrap came out, where all of them are drawn. */
  readonly setDrawnPx: (px: number) => void;
}

export function useLogPlace(store: LogStore, wraps: boolean): LogPlace {
  const box = useRef<HTMLDivElement>(null);
  const probe = useRef<HTMLSpanElement>(null);
  const size = useSize(box, probe);
  const [follows, setFollows] = useState(true);
  const [stay, setStay] = useState({ firstRow: 0, top: 0, scrollTop: 0 });
  const { firstRow } = store;
  const [drawnPx, setDrawnPx] = useState(0);
  const frame = wraps ? wrappedFrame(store, size, drawnPx) : evenFrame(store, size);
  const place = follows ? endOf(frame) : stayed(frame, stay, firstRow);

  // the last known scroll position: a change that we made ourselves is not an action of the user
  const expected = useRef(0);
  useLayoutEffect(() => {
    if (box.current === null || Math.abs(expected.current - place.scrollTop) < 1) return;
    box.current.scrollTop = place.scrollTop;
    expected.current = box.current.scrollTop;
  }, [place.scrollTop, frame.rows, frame.rowPx, frame.windowPx]);

  const onScroll = (): void => {
    const scrollTop = box.current?.scrollTop ?? 0;
    if (Math.abs(scrollTop - expected.current) < 1) return;
    expected.current = scrollTop;
    const next = scrolled(frame, place, scrollTop);
    setFollows(isAtEnd(frame, next));
    setStay({ firstRow, ...next });
  };
  useSettled(stay, () => setStay({ firstRow, ...placeAt(frame, place.top) }), isScaled(frame) && !follows);

  const goTo = (row: number): void => {
    setFollows(false);
    setStay({ firstRow, ...placeOfRow(frame, row - firstRow, wraps) });
  };
  const follow = (on: boolean): void => {
    if (!on) setStay({ firstRow, ...place });
    setFollows(on);
  };
  return { box, probe, frame, place, linePx: size.linePx, follows, setFollows: follow, goTo, onScroll, setDrawnPx };
}

function evenFrame(store: LogStore, { windowPx, linePx }: Size): Frame {
  return { rows: store.rows - store.firstRow, rowPx: linePx, windowPx };
}

/** The height of a few rows is measured once they are drawn; that of many is estimated from their length. */
function wrappedFrame(store: LogStore, { windowPx, linePx, columns }: Size, drawnPx: number): Frame {
  const rows = store.rows - store.firstRow;
  if (rows <= fewRows) return { rows, rowPx: Math.max(linePx, drawnPx / Math.max(1, rows)), windowPx };
  const linesPerRow = Math.max(1, Math.round((store.keptBytes / rows / columns) * 4) / 4);
  return { rows, rowPx: linePx * linesPerRow, windowPx };
}

/** Rows that were removed at the beginning reduce the height. */
function stayed(frame: Frame, stay: Place & { readonly firstRow: number }, firstRow: number): Place {
  if (firstRow === stay.firstRow) return stay;
  return placeAt(frame, stay.top - (firstRow - stay.firstRow) * frame.rowPx);
}

function isScaled(frame: Frame): boolean {
  return stretchPx(frame) < frame.rows * frame.rowPx;
}

/** When scrolling has come to rest the scrollbar is put where it belongs by proportion. */
function useSettled(stay: Place, settle: () => void, isNeeded: boolean): void {
  const latest = useRef(settle);
  useEffect(() => {
    latest.current = settle;
  });
  useEffect(() => {
    if (!isNeeded) return undefined;
    const timer = setTimeout(() => latest.current(), settleMs);
    return () => clearTimeout(timer);
  }, [stay.scrollTop, isNeeded]);
}

function useSize(box: RefObject<HTMLDivElement | null>, probe: RefObject<HTMLSpanElement | null>): Size {
  const [size, setSize] = useState<Size>({ windowPx: 400, linePx: 18, columns: 100 });
  useLayoutEffect(() => {
    const { current: window } = box;
    const { current: letter } = probe;
    if (window === null || letter === null) return undefined;
    const measure = (): void => {
      const { width, height } = letter.getBoundingClientRect();
      // hidden while there is nothing to show
      if (height === 0) return;
      // ten letters, so that parts of a pixel count
      const columns = Math.max(10, Math.floor(window.clientWidth / (width / 10)) - 8);
      setSize({ windowPx: window.clientHeight, linePx: height, columns });
    };
    const observer = new ResizeObserver(measure);
    observer.observe(window);
    measure();
    return () => observer.disconnect();
  }, [box, probe]);
  return size;
}
