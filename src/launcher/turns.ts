/** At most so many at a time; the others wait in line, the first come first. */

export interface Turn {
  /** Ends it; a second time changes nothing. */
  over(): void;
}

export class Turns {
  #free: number;
  readonly #line = new Set<() => void>();

  constructor(places: number) {
    this.#free = places;
  }

  /** Undefined when the signal aborts first. */
  async take(signal: AbortSignal): Promise<Turn | undefined> {
    if (signal.aborted) return undefined;
    if (this.#free > 0) this.#free--;
    else if (!(await this.#stand(signal))) return undefined;
    let over = false;
    return {
      over: () => {
        if (over) return;
        over = true;
        const [next] = this.#line;
        if (next === undefined) this.#free++;
        else next();
      },
    };
  }

  #stand(signal: AbortSignal): Promise<boolean> {
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
