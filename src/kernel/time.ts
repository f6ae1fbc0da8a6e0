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
  /** Sleeps for so long by a clock that only runs, though `now()` may stand still; without it, by `until`. */
  sleep?(ms: number, signal?: AbortSignal): Promise<void>;
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

/** The server's clock was set: forward, or back by a negative number of milliseconds. */
export interface ClockStep {
  readonly byMs: number;
  /** By the server's clock, after the step. */
  readonly at: Date;
}

/** A change of more than this between two measurements is a step and not a drift: measurements are 10 s apart at most. */
const stepMs = 1_000;
/** A step forward is over at once, and shown for so long. */
const shownMs = 60_000;

/**
 * A clock that follows a server's from the first measurement on. It stands on the monotonic clock, so a step of this machine's
 * wall clock does not move it.
 *
 * When the server's clock is set back, this clock stands still until the server's has caught up: turned back, it would date new
 * results before old ones, and a trigger's instants would be due again. Sleeps that keep something going do not stand still.
 */
export class DisciplinedTime implements Time {
  #offsetMs: number | undefined;
  #last = 0;
  #step: { readonly byMs: number; readonly atMs: number; readonly atOwnMs: number } | undefined;
  readonly #onStep: (step: ClockStep) => void;

  constructor(onStep: (step: ClockStep) => void = () => {}) {
    this.#onStep = onStep;
  }

  /** Whether the server's clock is known; until then nothing may be fired or swept. */
  get known(): boolean {
    return this.#offsetMs !== undefined;
  }

  /** The server said `serverMs` somewhere between these two readings of `performance.now()`. */
  correct(serverMs: number, sentAt: number, receivedAt: number): void {
    // what was shown before the first measurement was this machine's own time, by which nothing was done
    if (!this.known) this.#last = 0;
    const offsetMs = serverMs - (sentAt + receivedAt) / 2;
    const byMs = offsetMs - (this.#offsetMs ?? offsetMs);
    this.#offsetMs = offsetMs;
    // an answer that took long says little of when it was given
    if (Math.abs(byMs) <= stepMs + (receivedAt - sentAt)) return;
    this.#step = { byMs, atMs: serverMs, atOwnMs: receivedAt };
    this.#onStep({ byMs, at: new Date(serverMs) });
  }

  /** For how much longer this clock stands still; 0: it runs. */
  get heldMs(): number {
    return this.#offsetMs === undefined ? 0 : Math.max(0, this.#last - this.#offsetMs - performance.now());
  }

  /** The last step of the server's clock, for as long as this clock stands still because of it, and for a minute. */
  get step(): ClockStep | undefined {
    if (this.#step === undefined) return undefined;
    const { byMs, atMs, atOwnMs } = this.#step;
    const isOver = this.heldMs === 0 && performance.now() - atOwnMs > shownMs;
    return isOver ? undefined : { byMs, at: new Date(atMs) };
  }

  now(): number {
    const offset = this.#offsetMs ?? performance.timeOrigin;
    this.#last = Math.max(this.#last, Math.floor(offset + performance.now()));
    return this.#last;
  }

  until(atMs: number, signal?: AbortSignal): Promise<void> {
    return sleepUntil(() => this.now(), atMs, signal);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return runningTime.until(runningTime.now() + ms, signal);
  }
}

/** What a step means, in words. */
export function formatStep({ byMs, at }: ClockStep, heldMs: number): string {
  const seconds = (ms: number): string => `${Math.round(Math.abs(ms) / 1_000)} s`;
  const turned = `the database server's clock was set ${byMs < 0 ? 'back' : 'forward'} by ${seconds(byMs)} at ${at.toISOString()}`;
  return heldMs === 0 ? turned : `${turned}: nothing fires until it has caught up, in ${seconds(heldMs)}`;
}
