import { expect, test } from 'vitest';
import { LogSearch } from './log-search.ts';
import { LogStore, longestRow } from './log-store.ts';

const escape = '\u001B';
const megabyte = 1024 * 1024;
const bytes = (text: string) => new TextEncoder().encode(text);

/** Feeds a text in chunks of a size that cuts lines, characters and codes anywhere. */
function stored(text: string, chunkBytes = 7, store = new LogStore()): LogStore {
  const all = bytes(text);
  for (let at = 0; at < all.length; at += chunkBytes) store.append(all.subarray(at, at + chunkBytes));
  return store;
}

function textsOf(store: LogStore): string[] {
  return store.read(store.firstRow, store.rows).map((row) => row.text);
}

test('rows are lines, whatever the chunks; the last need not have ended', () => {
  const store = stored('one\r\n\ntwö 😀\nthree');
  expect(textsOf(store)).toEqual(['one', '', 'twö 😀', 'three']);
  expect(store.lines).toBe(4);
  store.append(bytes(' more\n'));
  expect(store.read(3, 9)).toMatchObject([{ row: 3, line: 4, text: 'three more' }]);
  expect(store.rows).toBe(4);
});

test('nothing is lost or doubled over many blocks', () => {
  const lines = Array.from({ length: 60_000 }, (_, n) => `line ${n} ${'é'.repeat(n % 40)}`);
  const store = stored(`${lines.join('\n')}\n`, 65_521);
  expect(store.rows).toBe(60_000);
  expect(textsOf(store)).toEqual(lines);
  expect(store.read(59_999, 60_001)).toMatchObject([{ line: 60_000, text: lines.at(-1) }]);
});

test('a line too long for a row goes on in the next, under one number, and no character is cut', () => {
  const store = stored(`first\n${'€'.repeat(20_000)}\nlast\n`, 1_000);
  const rows = store.read(0, store.rows);
  expect(rows.every((row) => bytes(row.text).length <= longestRow + 3)).toBe(true);
  const long = rows.slice(1, -1);
  expect(long.map((row) => row.text).join('')).toBe('€'.repeat(20_000));
  expect(long.map((row) => [row.line, row.goesOn])).toEqual(long.map((_, n) => [2, n > 0]));
  expect(rows.at(-1)).toMatchObject({ line: 3, goesOn: false, text: 'last' });
  expect([1, 2, 3, 99].map((line) => store.rowOfLine(line))).toEqual([0, 1, rows.length - 1, rows.length - 1]);
});

test('a line that fills its row exactly makes no empty row', () => {
  expect(textsOf(stored(`${'x'.repeat(longestRow)}\nnext\n`, 100)).map((text) => text.length)).toEqual([longestRow, 4]);
});

test('a colour goes on over lines and blocks, also where its code is cut in two', () => {
  const filler = 'x'.repeat(99);
  const lines = Array.from({ length: 5_000 }, () => filler);
  // the code stands across the end of the first block of 2^18 bytes
  const before = 'y'.repeat((1 << 18) - 3);
  const store = stored(`${before}${escape}[31mred\n${lines.join('\n')}\n${escape}[0mend\nplain\n`, 4_099);
  const [row] = store.read(store.rows - 100, store.rows - 99);
  expect(row?.style).toEqual({ ink: 1 });
  expect(store.read(store.rows - 1, store.rows)[0]?.style).toEqual({});
});

test('a log beyond its bound keeps the end, and its numbers', () => {
  const store = new LogStore(megabyte);
  const lines = Array.from({ length: 50_000 }, (_, n) => `${n} ${'z'.repeat(80)}\n`);
  stored(lines.join(''), 50_000, store);
  expect(store.isCut).toBe(true);
  expect(store.keptBytes).toBeLessThan(1.5 * megabyte);
  const [first] = store.read(0, store.firstRow + 1);
  expect(first).toMatchObject({ row: store.firstRow, line: store.firstRow + 1 });
  expect(first?.text.startsWith(`${store.firstRow} `)).toBe(true);
  expect(store.read(49_999, 50_000)[0]?.text).toMatch(/^49999 /);
});

test('search finds what one sees, in any case, and goes on as the log grows', () => {
  const store = stored(`An ${escape}[31mErr${escape}[0mor\nfine\nerror error\n`);
  const search = new LogSearch(store, 'ERROR');
  expect(search.look(store.rows, 1_000)).toBe(false);
  expect(search.hits).toEqual([0, 2, 2]);
  store.append(bytes('an error\n'));
  search.look(store.rows, 1_000);
  expect(search.hits).toEqual([0, 2, 2, 3]);
  const drawn = new LogSearch(stored(`error\r ok\n${'x'.repeat(9_000)} Error\nerror\n`), 'error');
  drawn.look(9, 1_000);
  expect(drawn.hits).toEqual([2, 3]);
  const literal = new LogSearch(stored('a.c\nabc\n'), 'a.c');
  literal.look(2, 1_000);
  expect(literal.hits).toEqual([0]);
});

test('a hundred megabytes: bounded memory, no long step, quick to read anywhere and to search', () => {
  const line = (n: number) =>
    n % 1_000 === 0
      ? `${n} ${escape}[31mfailed${escape}[0m to reach it\n`
      : `${n} all is well, going on with the next\n`;
  const chunks = Array.from({ length: 16 }, (_, c) =>
    bytes(Array.from({ length: 1_600 }, (_, n) => line(c * 1_600 + n)).join('')),
  );
  globalThis.gc?.();
  const heapBefore = process.memoryUsage();
  const store = new LogStore();
  const steps: number[] = [];
  const timed = (work: () => unknown): void => {
    // of the processor's time, because others may want it, too
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    steps.push((user + system) / 1_000);
  };
  while (store.bytes < 100 * megabyte) for (const chunk of chunks) timed(() => store.append(chunk));
  const grown = process.memoryUsage();
  expect(store.rows).toBeGreaterThan(2_000_000);
  expect(grown.arrayBuffers - heapBefore.arrayBuffers).toBeLessThan(110 * megabyte);
  expect(grown.heapUsed - heapBefore.heapUsed).toBeLessThan(100 * megabyte);

  for (let part = 0; part <= 10; part++) {
    const from = Math.floor((part / 10) * (store.rows - 60));
    timed(() => expect(store.read(from, from + 60)).toHaveLength(60));
  }
  const search = new LogSearch(store, 'FAILED to');
  for (let more = true; more; ) timed(() => (more = search.look(store.rows, 10)));
  expect(search.hits).toHaveLength((store.rows / 25_600) * 26);
  expect(store.textOf(search.hits.at(-1) ?? 0)).toContain('25000');
  // one step in the page must not be felt
  steps.sort((a, b) => a - b);
  expect(steps.at(Math.floor(steps.length * 0.99))).toBeLessThan(50);
  expect(steps.reduce((sum, step) => sum + step, 0)).toBeLessThan(15_000);
}, 60_000);
