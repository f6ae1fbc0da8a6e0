/**
 * Gathers the names of answers that events have outdated and has them read again in rounds: a round starts `afterMs`
 * after the first touch and at least `everyMs` after the round before, and never while that round is still under way, so a
 * slow server gets fewer requests. Nothing is read while the tab is hidden, but when it shows again.
 */
import type { QueryKey } from '@tanstack/react-query';

interface RefresherOptions {
  readonly afterMs: number;
  readonly everyMs: number;
  readonly refresh: (keys: readonly QueryKey[]) => Promise<unknown>;
  readonly isHidden: () => boolean;
}

/** Beyond this everything on show is read again. */
const mostNames = 500;

export class Refresher {
  readonly #options: RefresherOptions;
  #touched = new Map<string, QueryKey>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #busy = false;
  #lastAt = Number.NEGATIVE_INFINITY;

  constructor(options: RefresherOptions) {
    this.#options = options;
  }

  touch(keys: readonly QueryKey[]): void {
    for (const key of keys) this.#touched.set(JSON.stringify(key), key);
    // a tab that is hidden for long must neither remember every run nor read them one by one
    if (this.#touched.size > mostNames) this.#touched = new Map([['[]', []]]);
    this.wake();
  }

  /** Looks again whether there is something to do, say because the tab shows again. */
  wake(): void {
    if (this.#busy || this.#timer !== undefined || this.#touched.size === 0 || this.#options.isHidden()) return;
    const waitMs = Math.max(this.#options.afterMs, this.#lastAt + this.#options.everyMs - performance.now());
    this.#timer = setTimeout(() => void this.#round(), waitMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#touched.clear();
  }

  async #round(): Promise<void> {
    this.#timer = undefined;
    if (this.#options.isHidden()) return;
    const keys = [...this.#touched.values()];
    this.#touched = new Map();
    this.#lastAt = performance.now();
    this.#busy = true;
    try {
      await this.#options.refresh(keys);
    } finally {
      this.#busy = false;
      this.wake();
    }
  }
}
