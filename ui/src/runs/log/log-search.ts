/**
 * Looks for a text in a log, a little at a time, so that the page stays quick. It finds what one sees: without colours,
 * whatever the case. While the log grows it goes on where it stopped; beyond `mostHits` it no longer looks.
 */
import { plainText, withoutCodes } from './ansi.ts';
import type { LogStore } from './log-store.ts';

export const mostHits = 100_000;
const drawnOver = /\r(?!\n)/;

export class LogSearch {
  readonly pattern: RegExp;
  readonly #store: LogStore;
  readonly #hits: number[] = [];
  #next = 0;

  constructor(store: LogStore, question: string) {
    this.#store = store;
    this.pattern = patternOf(question);
  }

  /** The rows of what was found, once for each time it stands there; grows while the search goes on. */
  get hits(): readonly number[] {
    return this.#hits;
  }
  get isFull(): boolean {
    return this.#hits.length >= mostHits;
  }

  /** Looks through rows before `end` for about `ms`; whether there is more to look at. */
  look(end: number, ms: number): boolean {
    const until = performance.now() + ms;
    while (this.#hasMore(end)) {
      const from = Math.max(this.#next, this.#store.firstRow);
      const stretch = this.#store.stretchFrom(from);
      const to = Math.min(end, stretch.end);
      const isSimple = stretch.isEven && !drawnOver.test(stretch.text);
      if (isSimple) this.#atOnce(withoutCodes(stretch.text), from, to);
      this.#next = isSimple ? to : this.#rowByRow(from, to, until);
      if (performance.now() >= until) break;
    }
    return this.#hasMore(end);
  }

  #hasMore(end: number): boolean {
    return !this.isFull && Math.max(this.#next, this.#store.firstRow) < Math.min(end, this.#store.rows);
  }

  /** If each line is a row, the row is the number of earlier line ends. */
  #atOnce(text: string, from: number, to: number): void {
    let row = from;
    let lineEnd = text.indexOf('\n');
    for (const { index } of text.matchAll(this.pattern)) {
      for (; lineEnd !== -1 && lineEnd < index; row++) lineEnd = text.indexOf('\n', lineEnd + 1);
      if (row >= to || this.isFull) return;
      this.#hits.push(row);
    }
  }

  /** Returns where to go on. */
  #rowByRow(from: number, to: number, until: number): number {
    for (let row = from; row < to; row++) {
      const text = plainText(this.#store.textOf(row));
      for (const _ of text.matchAll(this.pattern)) this.#hits.push(row);
      if (row % 64 === 63 && performance.now() >= until) return row + 1;
    }
    return to;
  }
}

export function patternOf(question: string): RegExp {
  return new RegExp(question.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&'), 'gi');
}

/** The next hit below or above a row, in a list of hits by row. Wraps around at the ends. */
export function hitFrom(hits: readonly number[], row: number, direction: 1 | -1): number {
  const below = hits.findIndex((hit) => hit >= row);
  if (direction === 1) return below === -1 ? 0 : below;
  return below === -1 || below === 0 ? hits.length - 1 : below - 1;
}
