/**
 * Renders aligned tables. With a width, `flexible` columns shrink until a row fits on a line. Other columns, such as ids that
 * users copy, are never cut. Without a width (a pipe, a file) nothing is cut.
 */
import type { Paint, Style } from './paint.ts';
import { displayWidth, oneLine, pad, truncate } from './width.ts';

export interface Column {
  readonly title: string;
  readonly align?: 'left' | 'right';
  readonly flexible?: boolean;
}

type Cell = string | number | null | { readonly text: string; readonly style: Style };
export type Row = readonly Cell[];

export interface Frame {
  readonly width: number | undefined;
  readonly paint: Paint;
}

const gap = '  ';
const minColumnWidth = 6;

export function renderTable(columns: readonly Column[], rows: readonly Row[], frame: Frame): string[] {
  const widths = fit(columns, naturalWidths(columns, rows), frame.width);
  const header = columns.map((column) => ({ text: column.title, style: 'bold' as const }));
  return [header, ...rows].map((row) => renderRow(columns, row, widths, frame.paint));
}

function textOf(cell: Cell | undefined): string {
  if (cell === null || cell === undefined) return '-';
  return typeof cell === 'object' ? oneLine(cell.text) : oneLine(String(cell));
}

function naturalWidths(columns: readonly Column[], rows: readonly Row[]): number[] {
  const widths = columns.map((column) => displayWidth(column.title));
  for (const row of rows) {
    for (const [i, width] of widths.entries()) widths[i] = Math.max(width, displayWidth(textOf(row[i])));
  }
  return widths;
}

/** Shrinks the widest flexible column by one, repeatedly, until the row fits or no column can shrink further. */
function fit(columns: readonly Column[], natural: readonly number[], width: number | undefined): number[] {
  const widths = [...natural];
  if (width === undefined || width <= 0) return widths;
  let excess = widths.reduce((sum, each) => sum + each, 0) + gap.length * (widths.length - 1) - width;
  while (excess > 0) {
    const widest = widestFlexible(columns, widths);
    if (widest === undefined) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
    excess -= 1;
  }
  return widths;
}

function widestFlexible(columns: readonly Column[], widths: readonly number[]): number | undefined {
  let widest: number | undefined;
  for (const [i, width] of widths.entries()) {
    const least = Math.max(minColumnWidth, displayWidth(columns[i]?.title ?? ''));
    if (columns[i]?.flexible !== true || width <= least) continue;
    if (widest === undefined || width > (widths[widest] ?? 0)) widest = i;
  }
  return widest;
}

function renderRow(columns: readonly Column[], row: Row, widths: readonly number[], paint: Paint): string {
  const cells = columns.map((column, i) => {
    const cell = row[i];
    const width = widths[i] ?? 0;
    const text = truncate(textOf(cell), width);
    const last = i === columns.length - 1 && column.align !== 'right';
    const padded = last ? text : pad(text, width, column.align === 'right' ? 'left' : 'right');
    return typeof cell === 'object' && cell !== null ? paint(cell.style, padded) : padded;
  });
  return cells.join(gap).trimEnd();
}
