/**
 * Logs that the API cannot be reached: once, then once a minute, and once when it is back. An outage never ends the worker
 * (design §7). The same for an API that answers, but rejects what this worker sends.
 */
import type { Log } from '../kernel/log.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';

export class Outage {
  readonly #log: Log;
  readonly #now: () => number;
  readonly #throttle: LogThrottle;
  #sinceMs: number | undefined;

  constructor(log: Log, now: () => number) {
    this.#log = log;
    this.#now = now;
    this.#throttle = new LogThrottle({ clock: now });
  }

  failed(error: unknown): void {
    const nowMs = this.#now();
    this.#sinceMs ??= nowMs;
    if (this.#throttle.isDue('outage', 'no answer'))
      this.#log.warn({ err: error, forMs: nowMs - this.#sinceMs }, 'The API does not answer; running tasks go on');
  }

  refused(error: unknown): void {
    if (this.#throttle.isDue('rejection', 'rejected'))
      this.#log.error({ err: error }, 'The API refuses what this worker says; are they of the same version?');
  }

  worked(): void {
    if (this.#sinceMs === undefined) return;
    this.#log.info({ forMs: this.#now() - this.#sinceMs }, 'The API answers again');
    this.#sinceMs = undefined;
    this.#throttle.clear('outage');
  }
}
