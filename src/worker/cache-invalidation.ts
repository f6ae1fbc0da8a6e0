/**
 * Drops cached objects that gateways report as changed. Definitions are immutable by (task, version), except for the name of
 * their project.
 *
 * Each gateway numbers its invalidations under an epoch (`gateway/desks/invalidation-log.ts`). The whole cache is dropped if the
 * epoch is new to this worker (the gateway has restarted, or another one has the same address), and if some of the invalidations
 * were no longer kept.
 */
import type { Seen, Signals } from '../contract/wire.ts';
import type { DefinitionCache } from './definition-cache.ts';

const maxEpochs = 16;

/** A cache that drops its objects by invalidation. */
type Cache = Pick<DefinitionCache, 'drop' | 'dropAll'>;

export class CacheInvalidation {
  readonly #cache: Cache;
  readonly #seen = new Map<string, number>();

  constructor(cache: Cache) {
    this.#cache = cache;
  }

  /** Sent with every poll and heartbeat. */
  get seen(): Seen {
    return Object.fromEntries(this.#seen);
  }

  apply({ epoch, newest, invalidate }: Pick<Signals, 'epoch' | 'newest' | 'invalidate'>): void {
    const known = this.#seen.get(epoch);
    if (known === undefined || newest - known > invalidate.length) this.#cache.dropAll();
    else for (const change of invalidate) this.#cache.drop(change);
    this.#seen.delete(epoch); // moves it to the end: most recent
    this.#seen.set(epoch, Math.max(newest, known ?? 0));
    for (const old of this.#seen.keys()) {
      if (this.#seen.size <= maxEpochs) return;
      this.#seen.delete(old);
    }
  }
}
