/**
 * Tenants whose rows the database rejects: another session has locked one, or a foreign constraint or trigger forbids the
 * change. The launcher leaves such a tenant out of its writes, tries it again after a pause, and logs it, throttled.
 */
import { performance } from 'node:perf_hooks';
import type { Log } from '../kernel/log.ts';
import { LogThrottle } from '../kernel/log-throttle.ts';
import type { Whose } from './plan-writes.ts';

/** How long one is left out before it is tried again. */
const againMs = 5_000;
/** So many in one turn: each may have it wait for a moment. */
const mostAgain = 5;

export class RejectedTenants {
  readonly #log: Log;
  readonly #what: string;
  /** When each of them is tried again. */
  readonly #whose = new Map<Whose, number>();
  readonly #throttle = new LogThrottle();

  /** `what` it is that they are refused. */
  constructor(log: Log, what: string) {
    this.#log = log;
    this.#what = what;
  }

  /** `again`: those whose time has come, a few of them. */
  current(): { readonly without: ReadonlySet<Whose>; readonly again: readonly Whose[] } {
    const nowMs = performance.now();
    const late = [...this.#whose].filter(([, untilMs]) => untilMs <= nowMs);
    const due = late.toSorted(([, aMs], [, bMs]) => aMs - bMs).slice(0, mostAgain);
    return { without: new Set(this.#whose.keys()), again: due.map(([whose]) => whose) };
  }

  /** What came of a turn in which these were tried again. */
  note(refused: ReadonlyMap<Whose, unknown>, again: readonly Whose[], nameOf: (id: string) => string): void {
    for (const whose of again) if (!refused.has(whose)) this.#forget(whose);
    for (const [whose, error] of refused) {
      if (this.#throttle.isDue(subjectOf(whose), error))
        this.#log.warn(
          { err: error, tenant: whose === null ? null : nameOf(whose) },
          `${this.#what} cannot be written; it is left out, and tried again now and then`,
        );
      this.#whose.set(whose, performance.now() + againMs);
    }
  }

  #forget(whose: Whose): void {
    this.#whose.delete(whose);
    this.#throttle.clear(subjectOf(whose));
  }
}

function subjectOf(whose: Whose): string {
  return whose ?? "what is no tenant's";
}
