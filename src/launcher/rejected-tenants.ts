/**
 * Tenants whose rows the database rejects: another session has locked one, or a foreign constraint or trigger forbids the
 * change. The launcher leaves such a tenant out of its writes, retries it after a pause, and logs it, throttled.
 */
import { performance } from 'node:perf_hooks';
import type { Log } from '../kernel/log.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';
import type { Whose } from './plan-writes.ts';

/** How long an owner is left out before it is retried. */
const retryAfterMs = 5_000;
/** Retries in one turn. Each may have to wait for a lock. */
const maxRetries = 5;

export class RejectedTenants {
  readonly #log: Log;
  readonly #what: string;
  /** Rejected owners, and when each is retried. */
  readonly #whose = new Map<Whose, number>();
  readonly #throttle = new LogThrottle();

  /** `what`: which rows are rejected, for the log. */
  constructor(log: Log, what: string) {
    this.#log = log;
    this.#what = what;
  }

  /** `without`: all rejected owners. `again`: up to five of them that are due for a retry. */
  current(): { readonly without: ReadonlySet<Whose>; readonly again: readonly Whose[] } {
    const nowMs = performance.now();
    const late = [...this.#whose].filter(([, untilMs]) => untilMs <= nowMs);
    const due = late.toSorted(([, aMs], [, bMs]) => aMs - bMs).slice(0, maxRetries);
    return { without: new Set(this.#whose.keys()), again: due.map(([whose]) => whose) };
  }

  /** Records the result of a turn in which the owners in `again` were retried. */
  note(refused: ReadonlyMap<Whose, unknown>, again: readonly Whose[], nameOf: (id: string) => string): void {
    for (const whose of again) if (!refused.has(whose)) this.#forget(whose);
    for (const [whose, error] of refused) {
      if (this.#throttle.isDue(subjectOf(whose), error))
        this.#log.warn(
          { err: error, tenant: whose === null ? null : nameOf(whose) },
          `${this.#what} rows rejected, tenant left out for now`,
        );
      this.#whose.set(whose, performance.now() + retryAfterMs);
    }
  }

  #forget(whose: Whose): void {
    this.#whose.delete(whose);
    this.#throttle.clear(subjectOf(whose));
  }
}

function subjectOf(whose: Whose): string {
  return whose ?? 'no tenant';
}
