/**
 * The time of a simulated world. It stands still until the world moves it. A sleeper wakes when the clock has been moved
 * far enough. This includes product code that sleeps on Node's own timers: a suite that simulates replaces those of
 * `node:timers/promises` by `timersOnClock`.
 */
import { promisify } from 'node:util';
import type { Time } from '../../src/kernel/time.ts';

interface Sleeper {
  readonly atMs: number;
  readonly wake: () => void;
  readonly isWanted: () => boolean;
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

  /** The earliest time at which a sleeper of a living process wakes. */
  get nextWaking(): number | undefined {
    let next: number | undefined;
    for (const sleeper of this.#sleepers) {
      if (!sleeper.isWanted()) this.#sleepers.delete(sleeper);
      else if (next === undefined || sleeper.atMs < next) next = sleeper.atMs;
    }
    return next;
  }

  /** Moves forwards only. Sleepers wake in the order of their times. */
  moveTo(atMs: number): void {
    this.#now = Math.max(this.#now, atMs);
    const due = [...this.#sleepers].filter((sleeper) => sleeper.atMs <= this.#now);
    for (const sleeper of due.sort((a, b) => a.atMs - b.atMs)) if (sleeper.isWanted()) sleeper.wake();
  }

  /** The time as a process sees it. Sleepers of a dead process never wake. */
  timeOf(process: { readonly alive: boolean }): Time {
    const isAlive = (): boolean => process.alive;
    return { now: () => this.#now, until: (atMs, signal) => this.until(atMs, signal, isAlive) };
  }

  async until(atMs: number, signal?: AbortSignal, isWanted: () => boolean = () => true): Promise<void> {
    if (atMs <= this.#now || signal?.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const sleeper = { atMs, wake, isWanted };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', wake, { once: true });
    });
  }
}

let current: VirtualClock | undefined;

/** Makes timers run on this clock from now on. Sleepers of an earlier clock never wake. */
export function useClock(clock: VirtualClock): void {
  current = clock;
}

async function sleepOnClock(ms = 0, value?: unknown, options: { signal?: AbortSignal } = {}): Promise<unknown> {
  if (current === undefined) throw new Error('no world is being simulated');
  await current.until(current.now() + ms, options.signal);
  if (options.signal?.aborted) throw new Error('aborted');
  return value;
}

/** Replaces `node:timers/promises`. */
export const timersOnClock = { setTimeout: sleepOnClock, setImmediate: promisify(setImmediate) };
