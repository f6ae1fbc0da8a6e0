/** A bell: whoever waits goes on when it rings, or when the time is up. A ring while nobody waits is remembered once. */
import type { Time } from './time.ts';

export class Bell {
  readonly #time: Time;
  #rung = false;
  #waiting: (() => void) | undefined;

  constructor(time: Time) {
    this.#time = time;
  }

  ring(): void {
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
    // a clock that stands still must not stop whoever waits for a while
    await (time.sleep?.(timeoutMs, nap.signal) ?? time.until(time.now() + timeoutMs, nap.signal));
    this.#waiting = undefined;
    signal.removeEventListener('abort', wake);
  }
}
