/**
 * The visible rows of a log. Browsers draw nothing taller than some ten million pixels, so a longer log is scrolled over a
 * shorter distance: far moves by proportion, near ones by the pixel.
 *
 * If lines wrap, the heights of rows are unknown before they are drawn. Then the row at some fraction of the log is placed at
 * the same fraction of the window: the first at the top, the last at the bottom, and no height need be known.
 */
export interface Frame {
  readonly rows: number;
  /** The height of a row; if lines wrap, of an average one. */
  readonly rowPx: number;
  readonly windowPx: number;
}

/** `top` is how much of the whole lies above the window; `scrollTop` what the browser makes of it. */
export interface Place {
  readonly top: number;
  readonly scrollTop: number;
}

export const tallestPx = 8_000_000;
const sparePx = 400;
/** Up to this number of wrapping rows are all drawn, so that their height is known. */
export const fewRows = 300;

function wholePx({ rows, rowPx }: Frame): number {
  return rows * rowPx;
}

export function stretchPx(frame: Frame): number {
  return Math.min(tallestPx, wholePx(frame));
}

export function endOf(frame: Frame): Place {
  return placeAt(frame, Number.POSITIVE_INFINITY);
}

/** The place with so much above it, or the nearest there is. */
export function placeAt(frame: Frame, wanted: number): Place {
  const most = Math.max(0, wholePx(frame) - frame.windowPx);
  const mostScroll = Math.max(0, stretchPx(frame) - frame.windowPx);
  const top = Math.max(0, Math.min(wanted, most));
  return { top, scrollTop: most === mostScroll ? top : (top / most) * mostScroll };
}

/** The position after the browser has scrolled. */
export function scrolled(frame: Frame, from: Place, scrollTop: number): Place {
  const most = Math.max(0, wholePx(frame) - frame.windowPx);
  const mostScroll = Math.max(0, stretchPx(frame) - frame.windowPx);
  if (most === mostScroll) return { top: scrollTop, scrollTop };
  const moved = scrollTop - from.scrollTop;
  const isNear = Math.abs(moved) < frame.windowPx && scrollTop > 0 && scrollTop < mostScroll - 1;
  const top = isNear ? from.top + moved : (scrollTop / mostScroll) * most;
  return { top: Math.max(0, Math.min(top, most)), scrollTop };
}

export function isAtEnd(frame: Frame, { top }: Place): boolean {
  return top >= wholePx(frame) - frame.windowPx - frame.rowPx;
}

/** A row a third down the window; where lines wrap, as far down as it is in the log. */
export function placeOfRow(frame: Frame, row: number, wraps: boolean): Place {
  if (!wraps) return placeAt(frame, row * frame.rowPx - frame.windowPx / 3);
  return placeAt(frame, ((row + 0.5) / frame.rows) * (wholePx(frame) - frame.windowPx));
}

interface Drawn {
  /** Rows `from` up to, not including, `to`. */
  readonly from: number;
  readonly to: number;
  /** The position of `from` in the scrolled area. */
  readonly atPx: number;
}

/** For rows of one line each. */
export function evenRows(frame: Frame, { top, scrollTop }: Place): Drawn {
  const from = Math.max(0, Math.floor((top - sparePx) / frame.rowPx));
  const to = Math.min(frame.rows, Math.ceil((top + frame.windowPx + sparePx) / frame.rowPx));
  return { from, to, atPx: scrollTop + from * frame.rowPx - top };
}

interface Anchored {
  readonly from: number;
  readonly to: number;
  /** The row that stands at `partOfWindow`, with the part of it that lies above. */
  readonly anchor: number;
  readonly partOfRow: number;
  readonly partOfWindow: number;
}

/** For rows that wrap. `linePx` is the smallest height of a row. */
export function wrappedRows(frame: Frame, { top }: Place, linePx: number): Anchored {
  const most = wholePx(frame) - frame.windowPx;
  const part = most <= 0 ? 0 : Math.min(1, top / most);
  const at = part * frame.rows;
  const anchor = Math.max(0, Math.min(Math.floor(at), frame.rows - 1));
  const reach = Math.ceil((frame.windowPx + sparePx) / linePx);
  const isFew = frame.rows <= fewRows;
  const from = isFew ? 0 : Math.max(0, anchor - reach);
  const to = isFew ? frame.rows : Math.min(frame.rows, anchor + reach + 1);
  return { from, to, anchor, partOfRow: at - anchor, partOfWindow: part };
}
