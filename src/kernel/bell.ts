/** A wake-up for one waiter: `wait` returns when the bell rings or the time is up. Rings without a waiter are remembered as one. */
import type { Time } from './time.ts';

export class Bell {
  readonly #time: Time;
  #rung = false;
  #waiting: (() => void) | undefined;

  constructor(time: Time) {
    this.#time = time;
  }

  ring(): void {
    // each further abort would build an error, which takes 2.5 µs
    if (this.#rung) return;
    this.#rung = true;
    this.#waiting?.();
  }

  /** Returns true when it rang, false when `timeoutMs` passed or the signal aborted. One waiter at a time. */
  async wait(timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#rung && !signal.aborted) await this.#sleep(timeoutMs, signal);
    const rung = this.#rung;
    this.#rung = false;
    return rung;
  }

  async #sleep(timeoutMs: number, signal: AbortSignal): Promise<void> {
    const nap = new AbortController();
    const wake = (): void => nap.abort();
    signal.addEventListener('abort', wake, { once: true });
    this.#waiting = wake;
    const time = this.#time;
    // `until` would not return while the clock is held
    await (time.sleep?.(timeoutMs, nap.signal) ?? time.until(time.now() + timeoutMs, nap.signal));
    this.#waiting = undefined;
    signal.removeEventListener('abort', wake);
  }
}
