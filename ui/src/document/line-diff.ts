/**
 * The difference between two texts, line by line. Lines that occur once on either side hold the two together (patience
 * diff), and only what lies between them is compared in full, so that thousands of lines take milliseconds. Where two
 * stretches without any such line are too long even for that, one is shown as replaced by the other.
 */
export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added';
  readonly text: string;
  /** From 1; of the side that has it. */
  readonly before: number | undefined;
  readonly after: number | undefined;
}

/** Lines before times lines after that are compared in full: 8 MB of table. */
const mostCells = 4_000_000;

/** Half-open stretches of both sides. */
interface Stretch {
  readonly a: number;
  readonly aEnd: number;
  readonly b: number;
  readonly bEnd: number;
}

export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [a, b] = [linesOf(before), linesOf(after)];
  const out: DiffLine[] = [];
  let [x, y] = [0, 0];
  const remove = () => out.push({ kind: 'removed', text: a[x] ?? '', before: ++x, after: undefined });
  const add = () => out.push({ kind: 'added', text: b[y] ?? '', before: undefined, after: ++y });
  for (const [i, j] of pairsOf(a, b)) {
    while (x < i) remove();
    while (y < j) add();
    out.push({ kind: 'same', text: a[x] ?? '', before: ++x, after: ++y });
  }
  while (x < a.length) remove();
  while (y < b.length) add();
  return out;
}

function linesOf(text: string): readonly string[] {
  return text === '' ? [] : text.replace(/\n$/, '').split('\n');
}

type Pair = readonly [number, number];

/** Which line of one side is which of the other, in order. */
function pairsOf(a: readonly string[], b: readonly string[]): readonly Pair[] {
  const pairs: Pair[] = [];
  const open: Stretch[] = [{ a: 0, aEnd: a.length, b: 0, bEnd: b.length }];
  for (let stretch = open.pop(); stretch !== undefined; stretch = open.pop()) {
    const { inner, ends } = trimmed(a, b, stretch);
    pairs.push(...ends);
    if (inner.a === inner.aEnd || inner.b === inner.bEnd) continue;
    const anchors = anchorsOf(a, b, inner);
    if (anchors.length === 0) pairs.push(...commonLines(a, b, inner));
    else {
      pairs.push(...anchors);
      open.push(...between(inner, anchors));
    }
  }
  return pairs.sort(([i], [j]) => i - j);
}

function trimmed(a: readonly string[], b: readonly string[], stretch: Stretch): { inner: Stretch; ends: Pair[] } {
  let { a: i, aEnd, b: j, bEnd } = stretch;
  const ends: Pair[] = [];
  while (i < aEnd && j < bEnd && a[i] === b[j]) ends.push([i++, j++]);
  while (i < aEnd && j < bEnd && a[aEnd - 1] === b[bEnd - 1]) ends.push([--aEnd, --bEnd]);
  return { inner: { a: i, aEnd, b: j, bEnd }, ends };
}

/** Lines that occur once on both sides, and of these the longest row that is in order on both. */
function anchorsOf(a: readonly string[], b: readonly string[], { a: from, aEnd, b: start, bEnd }: Stretch): Pair[] {
  const once = onceIn(b, start, bEnd);
  const candidates = [...onceIn(a, from, aEnd)].flatMap(([line, i]): Pair[] => {
    const j = once.get(line);
    return j === undefined ? [] : [[i, j]];
  });
  return increasing(candidates.sort(([i], [k]) => i - k));
}

function onceIn(lines: readonly string[], from: number, to: number): ReadonlyMap<string, number> {
  const seen = new Map<string, number>();
  for (let i = from; i < to; i++) {
    const line = lines[i] ?? '';
    seen.set(line, seen.has(line) ? -1 : i);
  }
  for (const [line, at] of seen) if (at === -1) seen.delete(line);
  return seen;
}

/** The longest row of pairs whose second numbers rise: patience sorting. */
function increasing(pairs: readonly Pair[]): Pair[] {
  const piles: number[] = [];
  const previous: number[] = [];
  pairs.forEach(([, j], index) => {
    let [low, high] = [0, piles.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((pairs[piles[middle] ?? 0]?.[1] ?? 0) < j) low = middle + 1;
      else high = middle;
    }
    previous[index] = piles[low - 1] ?? -1;
    piles[low] = index;
  });
  const row: Pair[] = [];
  for (let index = piles.at(-1) ?? -1; index >= 0; index = previous[index] ?? -1) row.unshift(pairs[index] ?? [0, 0]);
  return row;
}

function between({ a, aEnd, b, bEnd }: Stretch, anchors: readonly Pair[]): Stretch[] {
  const starts: readonly Pair[] = [[a, b], ...anchors.map(([i, j]): Pair => [i + 1, j + 1])];
  const stops: readonly Pair[] = [...anchors, [aEnd, bEnd]];
  return starts.flatMap(([i, j], k): Stretch[] => {
    const [iEnd, jEnd] = stops[k] ?? [i, j];
    return iEnd > i && jEnd > j ? [{ a: i, aEnd: iEnd, b: j, bEnd: jEnd }] : [];
  });
}

/** The longest common subsequence by its table. */
function commonLines(a: readonly string[], b: readonly string[], { a: from, aEnd, b: start, bEnd }: Stretch): Pair[] {
  const [rows, columns] = [aEnd - from, bEnd - start];
  if (rows * columns > mostCells) return [];
  const width = columns + 1;
  const length = new Uint16Array((rows + 1) * width);
  const at = (i: number, j: number): number => length[i * width + j] ?? 0;
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      const isSame = a[from + i] === b[start + j];
      length[i * width + j] = isSame ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const pairs: Pair[] = [];
  for (let i = 0, j = 0; i < rows && j < columns; ) {
    if (a[from + i] === b[start + j]) pairs.push([from + i++, start + j++]);
    else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  }
  return pairs;
}
