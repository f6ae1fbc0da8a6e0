/** A clock that only a test moves. A sleeper continues once the clock has moved far enough, or its signal aborts. */
import type { Time } from '../../src/kernel/time.ts';

interface Sleeper {
  readonly atMs: number;
  readonly wake: () => void;
}

export class HandTime implements Time {
  #now: number;
  readonly #sleepers = new Set<Sleeper>();

  constructor(start: number | string) {
    this.#now = new Date(start).getTime();
  }

  now(): number {
    return this.#now;
  }

  /** Number of sleepers. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  /** Whether a sleeper waits for exactly this moment. */
  isAwaited(at: number | string): boolean {
    const atMs = new Date(at).getTime();
    return [...this.#sleepers].some((sleeper) => sleeper.atMs === atMs);
  }

  moveTo(at: number | string): void {
    this.#now = Math.max(this.#now, new Date(at).getTime());
    for (const sleeper of Array.from(this.#sleepers)) if (sleeper.atMs <= this.#now) sleeper.wake();
  }

  advance(ms: number): void {
    this.moveTo(this.#now + ms);
  }

  async until(atMs: number, signal?: AbortSignal): Promise<void> {
    if (atMs <= this.#now || signal?.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const sleeper = { atMs, wake };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', wake, { once: true });
    });
  }
}
