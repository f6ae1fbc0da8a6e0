/**
 * The pulse of something made of several loops: each notes when it comes round, so that one that hangs can be told from one
 * that waits. Late by two clocks, the given one and this machine's own: when the first is turned forward, or stands still
 * to be overtaken, nobody is ill.
 */
import type { Time } from './time.ts';

interface Round {
  readonly atMs: number;
  readonly atOwnMs: number;
  readonly nextWithinMs: number;
}

export class Pulse {
  readonly #time: Time;
  readonly #graceMs: number;
  readonly #rounds = new Map<string, Round>();

  constructor(time: Time, graceMs: number) {
    this.#time = time;
    this.#graceMs = graceMs;
  }

  /** This part has come round, and will again within this time if all is well. */
  beat(part: string, nextWithinMs: number): void {
    this.#rounds.set(part, { atMs: this.#time.now(), atOwnMs: performance.now(), nextWithinMs });
  }

  /** Parts that should have come round long ago, each with how long it has not. */
  stuck(): { readonly part: string; readonly forMs: number }[] {
    return [...this.#rounds].flatMap(([part, { atMs, atOwnMs, nextWithinMs }]) => {
      const forMs = Math.min(this.#time.now() - atMs, performance.now() - atOwnMs);
      return forMs > nextWithinMs + this.#graceMs ? [{ part, forMs }] : [];
    });
  }
}
