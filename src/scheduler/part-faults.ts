/**
 * The parts of a scheduler that fail. A part is one duty: firing triggers, offering runs, forgetting old runs. Each attempt
 * either clears its part's fault or adds to it, so a fault means: this part has failed at every attempt since it began.
 *
 * A fault lasts as long as two clocks agree that it does, the given one and this machine's own. A clock that is set forward
 * makes no fault older.
 */
import type { PartFault } from '../contract/engine.ts';
import type { Time } from '../kernel/time.ts';

interface Moment {
  readonly atMs: number;
  readonly atOwnMs: number;
}

interface Failing {
  readonly doing: string;
  readonly isVital: boolean;
  readonly first: Moment;
  readonly last: Moment;
  readonly message: string;
}

/**
 * A vital part is tried again within 10 s. If it has not failed for longer than this, its current attempt has run longer than
 * failed ones do, and the fault counts as over. A part that hangs is noticed by its pulse.
 */
const freshMs = 15_000;

export interface Part {
  /** What the part does, in words: "firing triggers". */
  readonly doing: string;
  readonly isVital: boolean;
  /** Errors that say nothing of this part; they pass through. */
  readonly ignores?: (error: unknown) => boolean;
}

export class PartFaults {
  readonly #time: Time;
  readonly #failing = new Map<string, Failing>();
  /** An error passes through an inner and an outer attempt; the inner one names the part. */
  readonly #noted = new WeakSet<object>();

  constructor(time: Time) {
    this.#time = time;
  }

  async attempt<T>(part: Part, work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      this.#failing.delete(part.doing);
      return result;
    } catch (error) {
      if (part.ignores?.(error) !== true) this.#note(part, error);
      throw error;
    }
  }

  current(): readonly PartFault[] {
    const now = this.#now();
    return [...this.#failing.values()]
      .filter(({ isVital, last }) => !isVital || between(last, now) < freshMs)
      .map(({ doing, isVital, first, last, message }) => ({
        doing,
        isVital,
        since: new Date(first.atMs),
        failingMs: between(first, last),
        message,
      }));
  }

  #note({ doing, isVital }: Part, error: unknown): void {
    if (typeof error === 'object' && error !== null) {
      if (this.#noted.has(error)) return;
      this.#noted.add(error);
    }
    const last = this.#now();
    const before = this.#failing.get(doing);
    // a vital part that did not fail for long has not failed every time
    const goesOn = before !== undefined && (!isVital || between(before.last, last) < freshMs);
    const message = error instanceof Error ? error.message : String(error);
    this.#failing.set(doing, { doing, isVital, first: goesOn ? before.first : last, last, message });
  }

  #now(): Moment {
    return { atMs: this.#time.now(), atOwnMs: performance.now() };
  }
}

function between(from: Moment, to: Moment): number {
  return Math.max(0, Math.min(to.atMs - from.atMs, to.atOwnMs - from.atOwnMs));
}
