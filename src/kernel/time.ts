/**
 * Time is an argument. Production reads a clock disciplined to the tenant's database server; tests and the simulation
 * move it by hand.
 */
import { performance } from 'node:perf_hooks';
import { pause } from './service.ts';

export interface Time {
  /** Milliseconds since the epoch; never runs backwards. */
  now(): number;
  /** Returns when `now()` has reached `atMs`, or early when the signal aborts. */
  until(atMs: number, signal?: AbortSignal): Promise<void>;
}

const longestTimerMs = 2 ** 31 - 1;

async function sleepUntil(now: () => number, atMs: number, signal?: AbortSignal): Promise<void> {
  // a timer may ring a little early, and the clock may be corrected while it runs
  for (let left = atMs - now(); left > 0 && !signal?.aborted; left = atMs - now()) {
    await pause(Math.min(Math.ceil(left), 60_000, longestTimerMs), signal);
  }
}

export const systemTime: Time = {
  now: () => Date.now(),
  until: (atMs, signal) => sleepUntil(Date.now, atMs, signal),
};

/** Knows no date, only how long something takes: whatever becomes of this machine's clock or a server's, it runs. For pauses. */
export const runningTime: Time = {
  now: () => performance.now(),
  until: (atMs, signal) => sleepUntil(() => performance.now(), atMs, signal),
};

/**
 * A clock that follows a server's from the first measurement on. It stands on the monotonic clock, so a step of this machine's wall clock does not
 * move it; a measurement that says "earlier" holds it still instead of turning it back.
 */
export class DisciplinedTime implements Time {
  #offsetMs: number | undefined;
  #last = 0;

  /** Whether the server's clock is known; until then nothing may be fired or swept. */
  get known(): boolean {
    return this.#offsetMs !== undefined;
  }

  /** The server said `serverMs` somewhere between these two readings of `performance.now()`. */
  correct(serverMs: number, sentAt: number, receivedAt: number): void {
    // what was shown before the first measurement was this machine's own time, by which nothing was done
    if (!this.known) this.#last = 0;
    this.#offsetMs = serverMs - (sentAt + receivedAt) / 2;
  }

  now(): number {
    const offset = this.#offsetMs ?? performance.timeOrigin;
    this.#last = Math.max(this.#last, Math.floor(offset + performance.now()));
    return this.#last;
  }

  until(atMs: number, signal?: AbortSignal): Promise<void> {
    return sleepUntil(() => this.now(), atMs, signal);
  }
}
