/**
 * The memory for bodies of events. A courier keeps at most 64 MiB: readers beyond that wait in line. Each reader takes its share
 * once per batch and gives it back when the batch is answered, so that nobody waits for memory while holding some.
 */

interface MemoryShare {
  release(): void;
}

class BodyMemory {
  readonly #totalBytes: number;
  #usedBytes = 0;
  readonly #line: { readonly bytes: number; readonly admit: () => void }[] = [];

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** A batch that is larger than the whole waits until it is alone. */
  async take(bytes: number): Promise<MemoryShare> {
    const share = Math.min(bytes, this.#totalBytes);
    if (this.#line.length > 0 || this.#usedBytes + share > this.#totalBytes)
      await new Promise<void>((admit) => this.#line.push({ bytes: share, admit }));
    else this.#usedBytes += share;
    let isReleased = false;
    return {
      release: () => {
        if (isReleased) return;
        isReleased = true;
        this.#usedBytes -= share;
        this.#admit();
      },
    };
  }

  #admit(): void {
    for (let next = this.#line[0]; next !== undefined; next = this.#line[0]) {
      if (this.#usedBytes + next.bytes > this.#totalBytes) return;
      this.#usedBytes += next.bytes;
      this.#line.shift();
      next.admit();
    }
  }
}

/** 16 of the 64 MiB are for the tails (see tail.ts). Shared by all tenants of this process. */
export const batchMemory = new BodyMemory(48 * 1024 * 1024);
