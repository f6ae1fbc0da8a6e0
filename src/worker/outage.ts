/**
 * Says that the API cannot be reached: once, then once a minute, and once when it is back. Never an end (design §7). The
 * same for an API that answers, but will not take what this worker says.
 */
import type { Log } from '../kernel/log.ts';

export class Outage {
  readonly #log: Log;
  readonly #now: () => number;
  #sinceMs: number | undefined;
  #saidMs = 0;
  #refusalSaidMs = 0;

  constructor(log: Log, now: () => number) {
    this.#log = log;
    this.#now = now;
  }

  failed(error: unknown): void {
    const nowMs = this.#now();
    this.#sinceMs ??= nowMs;
    if (this.#saidMs > 0 && nowMs - this.#saidMs < 60_000) return;
    this.#saidMs = nowMs;
    this.#log.warn({ err: error, forMs: nowMs - this.#sinceMs }, 'The API does not answer; running tasks go on');
  }

  refused(error: unknown): void {
    const nowMs = this.#now();
    if (this.#refusalSaidMs > 0 && nowMs - this.#refusalSaidMs < 60_000) return;
    this.#refusalSaidMs = nowMs;
    this.#log.error({ err: error }, 'The API refuses what this worker says; are they of the same version?');
  }

  worked(): void {
    if (this.#sinceMs === undefined) return;
    this.#log.info({ forMs: this.#now() - this.#sinceMs }, 'The API answers again');
    this.#sinceMs = undefined;
    this.#saidMs = 0;
  }
}
