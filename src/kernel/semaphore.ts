/** A counting semaphore: a limited number of permits; callers beyond it wait in line, first come, first served. */

export interface Permit {
  /** Gives the permit back. A second call does nothing. */
  release(): void;
}

export class Semaphore {
  #free: number;
  readonly #line = new Set<() => void>();

  constructor(permits: number) {
    this.#free = permits;
  }

  /** Returns undefined if the signal aborts first. */
  async take(signal: AbortSignal): Promise<Permit | undefined> {
    if (signal.aborted) return undefined;
    if (this.#free > 0) this.#free--;
    else if (!(await this.#standInLine(signal))) return undefined;
    let isReleased = false;
    return {
      release: () => {
        if (isReleased) return;
        isReleased = true;
        const [next] = this.#line;
        if (next === undefined) this.#free++;
        else next();
      },
    };
  }

  #standInLine(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const leave = (): void => settle(false);
      const admit = (): void => settle(true);
      const settle = (admitted: boolean): void => {
        this.#line.delete(admit);
        signal.removeEventListener('abort', leave);
        resolve(admitted);
      };
      this.#line.add(admit);
      signal.addEventListener('abort', leave);
    });
  }
}
