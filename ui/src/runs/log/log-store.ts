/**
 * The output of a run, however long, as bytes in blocks with the places where its rows begin. It promises that
 * 1. taking a chunk in costs what copying it costs: nothing is decoded before it is looked at;
 * 2. a row is never longer than `longestRow`: a longer line goes on in the next row, under the same line number;
 * 3. beyond `mostBytes` the oldest blocks go, and rows and lines keep their numbers.
 */
import { plain, type Style, styleAfter, unfinishedCode } from './ansi.ts';

const blockBytes = 1 << 18;
export const longestRow = 8_192;
const mostLogBytes = 256 * 1024 * 1024;

const newline = 10;
const escapeByte = 27;

export interface Row {
  /** Counts from 0, and stays when older ones go. */
  readonly row: number;
  /** As people count, from 1. */
  readonly line: number;
  /** Whether it is the rest of the row before. */
  readonly goesOn: boolean;
  readonly text: string;
  /** In force where it begins. */
  readonly style: Style;
}

interface Block {
  readonly bytes: Uint8Array;
  /** Numbers of the first row and line that begin in it. */
  readonly firstRow: number;
  readonly firstLine: number;
  /** The beginnings of rows in it, and which of these rows continue a line, by position. */
  readonly starts: number[];
  readonly goingOn: number[];
  /** In force at its first byte; `carry` is a code that was cut in two there. */
  readonly style: Style;
  readonly carry: string;
}

export class LogStore {
  readonly #mostBytes: number;
  readonly #utf8 = new TextDecoder();
  readonly #latin1 = new TextDecoder('latin1');
  readonly #blocks: Block[] = [];
  /** All that ever came, in bytes, rows and lines. */
  #bytes = 0;
  #rows = 0;
  #lines = 0;
  #droppedBytes = 0;
  #openBytes = 0;
  #isLineEnded = true;
  #style: Style = plain;
  #carry = '';
  #hasCodes = false;

  constructor(mostBytes = mostLogBytes) {
    this.#mostBytes = mostBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }
  get keptBytes(): number {
    return this.#bytes - this.#droppedBytes;
  }
  /** Rows `firstRow` up to, not including, `rows` are there. */
  get firstRow(): number {
    return this.#blocks[0]?.firstRow ?? 0;
  }
  get rows(): number {
    return this.#rows;
  }
  get lines(): number {
    return this.#lines;
  }
  get isCut(): boolean {
    return this.#droppedBytes > 0;
  }

  append(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      const used = this.#bytes % blockBytes;
      if (used === 0) this.#addBlock();
      const block = this.#blocks.at(-1);
      if (block === undefined) return;
      const part = chunk.subarray(at, at + blockBytes - used);
      block.bytes.set(part, used);
      this.#index(block, part, used);
      this.#follow(part);
      this.#bytes += part.length;
      at += part.length;
    }
  }

  #addBlock(): void {
    const numbers = { firstRow: this.#rows, firstLine: this.#lines + 1 };
    const look = { style: this.#style, carry: this.#carry };
    this.#blocks.push({ bytes: new Uint8Array(blockBytes), ...numbers, starts: [], goingOn: [], ...look });
    while (this.keptBytes > this.#mostBytes && this.#blocks.length > 1) {
      this.#blocks.shift();
      this.#droppedBytes += blockBytes;
    }
  }

  #index(block: Block, part: Uint8Array, offset: number): void {
    let end = -1;
    for (let at = 0; at < part.length; ) {
      const isFull = this.#openBytes >= longestRow && mayBegin(part[at]);
      if (this.#isLineEnded || isFull) this.#startRow(block, offset + at);
      if (end < at) end = endFrom(part, at);
      const next = Math.min(end + 1, at + Math.max(1, longestRow - this.#openBytes), part.length);
      this.#openBytes += next - at;
      this.#isLineEnded = next === end + 1;
      at = next;
    }
  }

  #startRow(block: Block, at: number): void {
    if (this.#isLineEnded) this.#lines++;
    else block.goingOn.push(block.starts.length);
    block.starts.push(at);
    this.#rows++;
    this.#openBytes = 0;
    this.#isLineEnded = false;
  }

  #follow(part: Uint8Array): void {
    if (this.#carry === '' && !part.includes(escapeByte)) return;
    this.#hasCodes = true;
    const text = this.#carry + this.#latin1.decode(part);
    this.#style = styleAfter(text, this.#style);
    this.#carry = unfinishedCode(text);
  }

  /** Some rows in a row; those that are not there are left out. */
  read(from: number, to: number): readonly Row[] {
    const first = Math.max(from, this.firstRow);
    const last = Math.min(to, this.#rows);
    if (first >= last) return [];
    let style = this.#styleAt(first);
    const rows: Row[] = [];
    for (let row = first; row < last; row++) {
      const text = this.#utf8.decode(this.#bytesOf(row));
      rows.push({ row, ...this.#lineOf(row), text: withoutEnd(text), style });
      if (this.#hasCodes) style = styleAfter(text, style);
    }
    return rows;
  }

  textOf(row: number): string {
    return withoutEnd(this.#utf8.decode(this.#bytesOf(row)));
  }

  /** The row that a line begins with, or the nearest there is. */
  rowOfLine(line: number): number {
    const block = this.#blocks[lastWhere(this.#blocks, (candidate) => candidate.firstLine <= line)];
    if (block === undefined) return this.firstRow;
    let index = line - block.firstLine;
    for (const goingOn of block.goingOn) if (goingOn <= index) index++;
    return Math.max(this.firstRow, Math.min(block.firstRow + index, this.#rows - 1));
  }

  /** Rows that begin near each other, with their text in one piece; whether each of its lines is one row. */
  stretchFrom(row: number): { readonly end: number; readonly text: string; readonly isEven: boolean } {
    const { block, offset, next } = this.#locate(row);
    const start = block.starts[row - block.firstRow] ?? 0;
    const end = next === undefined ? this.#bytes : offset + blockBytes + (next.starts[0] ?? 0);
    const text = this.#utf8.decode(this.#bytesFrom(offset + start, end));
    return { end: next?.firstRow ?? this.#rows, text, isEven: block.goingOn.length === 0 };
  }

  #styleAt(row: number): Style {
    if (!this.#hasCodes) return plain;
    const { block } = this.#locate(row);
    const before = block.bytes.subarray(0, block.starts[row - block.firstRow]);
    return styleAfter(block.carry + this.#latin1.decode(before), block.style);
  }

  #lineOf(row: number): { line: number; goesOn: boolean } {
    const { block } = this.#locate(row);
    const index = row - block.firstRow;
    const goingOn = block.goingOn.filter((candidate) => candidate <= index);
    return { line: block.firstLine + index - goingOn.length, goesOn: goingOn.at(-1) === index };
  }

  #bytesOf(row: number): Uint8Array {
    const { block, offset, next } = this.#locate(row);
    const index = row - block.firstRow;
    const after = block.starts[index + 1] ?? (next === undefined ? undefined : blockBytes + (next.starts[0] ?? 0));
    return this.#bytesFrom(offset + (block.starts[index] ?? 0), after === undefined ? this.#bytes : offset + after);
  }

  /** Bytes by their place in the whole log; they lie in one block or in two. */
  #bytesFrom(from: number, to: number): Uint8Array {
    const index = Math.floor((from - this.#droppedBytes) / blockBytes);
    const start = from % blockBytes;
    const head = this.#blocks[index]?.bytes.subarray(start, start + to - from) ?? new Uint8Array();
    if (head.length >= to - from) return head;
    const rest = this.#blocks[index + 1]?.bytes.subarray(0, to - from - head.length) ?? new Uint8Array();
    const joined = new Uint8Array(head.length + rest.length);
    joined.set(head);
    joined.set(rest, head.length);
    return joined;
  }

  /** The block in which a row begins, and the next one, if any row begins there. */
  #locate(row: number): { block: Block; offset: number; next: Block | undefined } {
    const index = lastWhere(this.#blocks, (candidate) => candidate.firstRow <= row);
    const block = this.#blocks[index];
    if (block === undefined) throw new RangeError(`row ${row} is not kept`);
    const next = this.#blocks[index + 1];
    const offset = this.#droppedBytes + index * blockBytes;
    return { block, offset, next: next === undefined || next.starts.length === 0 ? undefined : next };
  }
}

/** The end of the line: its newline, or the end of the bytes. */
function endFrom(bytes: Uint8Array, at: number): number {
  const end = bytes.indexOf(newline, at);
  return end === -1 ? bytes.length : end;
}

/** Not within a character, nor with what ends the row before. */
function mayBegin(byte: number | undefined): boolean {
  return byte !== undefined && byte !== newline && (byte & 0xc0) !== 0x80;
}

/** The last index for which something holds that holds up to some index; -1 if none. */
function lastWhere<T>(items: readonly T[], holds: (item: T) => boolean): number {
  let low = -1;
  let high = items.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const item = items[middle];
    if (item !== undefined && holds(item)) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The row without its line ending. By hand: `/\r*\n$/` is quadratic in a row of carriage returns. */
function withoutEnd(text: string): string {
  if (!text.endsWith('\n')) return text;
  let end = text.length - 1;
  while (end > 0 && text[end - 1] === '\r') end--;
  return text.slice(0, end);
}
