/**
 * The time of a simulated world: it stands still until the world moves it. Whoever sleeps on it wakes when it has been
 * moved far enough, also where the product sleeps on Node's own timers (a suite that simulates replaces those of
 * `node:timers/promises` by `sleepOnClock`).
 */
import type { Time } from '../../src/kernel/time.ts';

interface Sleeper {
  readonly atMs: number;
  readonly wake: () => void;
  readonly wanted: () => boolean;
}

export class VirtualClock {
  #now: number;
  readonly #sleepers = new Set<Sleeper>();

  constructor(startMs: number) {
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  /** When the next sleeper that still lives wants to wake. */
  get nextWaking(): number | undefined {
    let next: number | undefined;
    for (const sleeper of this.#sleepers) {
      if (!sleeper.wanted()) this.#sleepers.delete(sleeper);
      else if (next === undefined || sleeper.atMs < next) next = sleeper.atMs;
    }
    return next;
  }

  /** Forwards only. Sleepers wake in the order of their times. */
  moveTo(atMs: number): void {
    this.#now = Math.max(this.#now, atMs);
    const due = [...this.#sleepers].filter((sleeper) => sleeper.atMs <= this.#now);
    for (const sleeper of due.sort((a, b) => a.atMs - b.atMs)) if (sleeper.wanted()) sleeper.wake();
  }

  /** The time as a process sees it; one that is dead never wakes again. */
  timeOf(process: { readonly alive: boolean }): Time {
    const wanted = (): boolean => process.alive;
    return { now: () => this.#now, until: (atMs, signal) => this.until(atMs, signal, wanted) };
  }

  async until(atMs: number, signal?: AbortSignal, wanted: () => boolean = () => true): Promise<void> {
    if (atMs <= this.#now || signal?.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const sleeper = { atMs, wake, wanted };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', wake, { once: true });
    });
  }
}

let current: VirtualClock | undefined;

/** From now on timers run on this clock; what sleeps on an earlier one never wakes. */
export function useClock(clock: VirtualClock): void {
  current = clock;
}

/** Stands in for `setTimeout` of `node:timers/promises`. */
export async function sleepOnClock(ms = 0, value?: unknown, options: { signal?: AbortSignal } = {}): Promise<unknown> {
  if (current === undefined) throw new Error('no world is being simulated');
  await current.until(current.now() + ms, options.signal);
  if (options.signal?.aborted) throw new Error('aborted');
  return value;
}
