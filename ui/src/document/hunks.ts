/** A difference as it is shown: changed lines with a few unchanged lines around them. */
import type { DiffLine } from './line-diff.ts';

export interface Hunk {
  /** How many unchanged lines are left out before it. */
  readonly skipped: number;
  readonly lines: readonly DiffLine[];
}

const context = 3;

/** The last may have no lines: it only says how many are left out at the end. */
export function hunksOf(diff: readonly DiffLine[]): readonly Hunk[] {
  const isNear = diff.map(() => false);
  diff.forEach(({ kind }, i) => {
    if (kind !== 'same') isNear.fill(true, Math.max(0, i - context), i + context + 1);
  });
  const hunks: Hunk[] = [];
  let [skipped, lines]: [number, DiffLine[]] = [0, []];
  const close = () => {
    hunks.push({ skipped, lines });
    [skipped, lines] = [0, []];
  };
  diff.forEach((line, i) => {
    if (isNear[i] === true) lines.push(line);
    else {
      if (lines.length > 0) close();
      skipped++;
    }
  });
  if (lines.length > 0 || skipped > 0) close();
  return hunks;
}

export interface Row {
  readonly left: DiffLine | undefined;
  readonly right: DiffLine | undefined;
}

/** Side by side: removed lines beside the lines that replace them. */
export function rowsOf(lines: readonly DiffLine[]): readonly Row[] {
  const rows: Row[] = [];
  let [removed, added]: [DiffLine[], DiffLine[]] = [[], []];
  const flush = () => {
    const count = Math.max(removed.length, added.length);
    for (let i = 0; i < count; i++) rows.push({ left: removed[i], right: added[i] });
    [removed, added] = [[], []];
  };
  for (const line of lines) {
    if (line.kind === 'removed') removed.push(line);
    else if (line.kind === 'added') added.push(line);
    else {
      flush();
      rows.push({ left: line, right: line });
    }
  }
  flush();
  return rows;
}
