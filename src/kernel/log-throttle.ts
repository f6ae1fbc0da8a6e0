/** What goes wrong for long is told when it begins, when it becomes another, and then once a minute. */
import { performance } from 'node:perf_hooks';

const everyMs = 60_000;

export class Seldom {
  readonly #told = new Map<string, { readonly what: string; readonly atMs: number }>();
  readonly #clock: () => number;

  /** `clock` is one that only runs. */
  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
  }

  /** Whether this, about that, is to be told now; whoever asks tells it. */
  isDue(about: string, what: unknown): boolean {
    const text = what instanceof Error ? what.message : String(what);
    const atMs = this.#clock();
    const told = this.#told.get(about);
    if (told?.what === text && atMs - told.atMs < everyMs) return false;
    this.#told.set(about, { what: text, atMs });
    return true;
  }
}
