/** Limits the memory of executions that a process keeps without needing them now. The least recently used ones leave first. */

export interface Kept {
  /** Frees the memory if nothing needs it now. Returns whether it did. */
  release(): boolean;
}

/** Bytes of executions in memory of one process, over all tenants. */
const usualMemoryBytes = 256 * 1024 * 1024;

/** Executions that one use may look at: with more at work than the limit, each use would otherwise look at all. */
const maxTries = 16;

export class Memory {
  readonly #maxBytes: number;
  /** The most recently used one is last. */
  readonly #kept = new Map<Kept, number>();
  #bytes = 0;

  constructor(maxBytes = usualMemoryBytes) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** It was used, and takes this much now. */
  use(kept: Kept, bytes: number): void {
    this.drop(kept);
    this.#kept.set(kept, bytes);
    this.#bytes += bytes;
    if (this.#bytes > this.#maxBytes) this.#shrink();
  }

  drop(kept: Kept): void {
    this.#bytes -= this.#kept.get(kept) ?? 0;
    this.#kept.delete(kept);
  }

  /** Those at work stay: they count as used now. */
  #shrink(): void {
    for (let tries = 0; tries < maxTries && this.#bytes > this.#maxBytes; tries++) {
      const [oldest] = this.#kept;
      if (oldest === undefined) return;
      const [kept, bytes] = oldest;
      this.drop(kept);
      if (kept.release()) continue;
      this.#kept.set(kept, bytes);
      this.#bytes += bytes;
    }
  }
}
