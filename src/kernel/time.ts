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
  /** Sleeps by a monotonic clock, even while `now()` is held. Without it, callers use `until`. */
  sleep?(ms: number, signal?: AbortSignal): Promise<void>;
}

const maxTimerMs = 2 ** 31 - 1;

async function sleepUntil(now: () => number, atMs: number, signal?: AbortSignal): Promise<void> {
  // a timer may fire a little early, and the clock may be corrected while it runs
  for (let left = atMs - now(); left > 0 && !signal?.aborted; left = atMs - now()) {
    await pause(Math.min(Math.ceil(left), 60_000, maxTimerMs), signal);
  }
}

export const systemTime: Time = {
  now: () => Date.now(),
  until: (atMs, signal) => sleepUntil(Date.now, atMs, signal),
};

/** A monotonic clock without a date, for pauses. No change of this machine's or a server's clock affects it. */
export const runningTime: Time = {
  now: () => performance.now(),
  until: (atMs, signal) => sleepUntil(() => performance.now(), atMs, signal),
};

/** The server's clock was set: forward, or back (negative). */
export interface ClockStep {
  readonly byMs: number;
  /** By the server's clock, after the step. */
  readonly at: Date;
}

/** A larger change between two measurements is a step, not a drift: measurements are 10 s apart at most. */
const stepMs = 1_000;
/** How long a step forward is shown, although it is over at once. */
const shownMs = 60_000;

/**
 * A clock that follows a server's from the first measurement on. It is based on the monotonic clock, so a step of this
 * machine's wall clock does not move it.
 *
 * When the server's clock is set back, this clock is held until the server's has caught up. If it went back, new results would
 * be dated before old ones, and a trigger's instants would be due again. Sleeps (`sleep`) are not held.
 */
export class DisciplinedTime implements Time {
  #offsetMs: number | undefined;
  #last = 0;
  #step: { readonly byMs: number; readonly atMs: number; readonly atOwnMs: number } | undefined;
  readonly #onStep: (step: ClockStep) => void;

  constructor(onStep: (step: ClockStep) => void = () => {}) {
    this.#onStep = onStep;
  }

  /** Whether the server's clock is known. Until then nothing may be fired or swept. */
  get known(): boolean {
    return this.#offsetMs !== undefined;
  }

  /** The server's time was `serverMs` at some moment between these two readings of `performance.now()`. */
  correct(serverMs: number, sentAt: number, receivedAt: number): void {
    // before the first measurement `now()` returned this machine's own time, and no work was done by it
    if (!this.known) this.#last = 0;
    const offsetMs = serverMs - (sentAt + receivedAt) / 2;
    const byMs = offsetMs - (this.#offsetMs ?? offsetMs);
    this.#offsetMs = offsetMs;
    // a slow answer is an inexact measurement
    if (Math.abs(byMs) <= stepMs + (receivedAt - sentAt)) return;
    this.#step = { byMs, atMs: serverMs, atOwnMs: receivedAt };
    this.#onStep({ byMs, at: new Date(serverMs) });
  }

  /** How much longer this clock is held; 0: it runs. */
  get heldMs(): number {
    return this.#offsetMs === undefined ? 0 : Math.max(0, this.#last - this.#offsetMs - performance.now());
  }

  /** The last step of the server's clock, while this clock is held because of it, and for a minute. */
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

/** Describes a step and its effect. */
export function formatStep({ byMs, at }: ClockStep, heldMs: number): string {
  const seconds = (ms: number): string => `${Math.round(Math.abs(ms) / 1_000)} s`;
  const turned = `the database server's clock was set ${byMs < 0 ? 'back' : 'forward'} by ${seconds(byMs)} at ${at.toISOString()}`;
  return heldMs === 0 ? turned : `${turned}: nothing fires until it has caught up, in ${seconds(heldMs)}`;
}
