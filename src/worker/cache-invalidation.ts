/**
 * What gateways say has changed. Each counts for itself, under an epoch: what a worker has not heard from a gateway that it
 * knows is told; of one that it does not know (it has started since, or is another behind the same address), or that
 * counted further than it could tell, nobody knows what was missed, so everything is dropped.
 */
import type { Seen, Signals } from '../contract/wire.ts';
import type { DefinitionCache } from './definition-cache.ts';

const mostEpochs = 16;

export class News {
  readonly #definitions: Pick<DefinitionCache, 'drop' | 'dropAll'>;
  readonly #seen = new Map<string, number>();

  constructor(definitions: Pick<DefinitionCache, 'drop' | 'dropAll'>) {
    this.#definitions = definitions;
  }

  /** To be sent with every poll and heartbeat. */
  get seen(): Seen {
    return Object.fromEntries(this.#seen);
  }

  hear({ epoch, newest, invalidate }: Pick<Signals, 'epoch' | 'newest' | 'invalidate'>): void {
    const known = this.#seen.get(epoch);
    if (known === undefined || newest - known > invalidate.length) this.#definitions.dropAll();
    else for (const change of invalidate) this.#definitions.drop(change);
    this.#seen.delete(epoch); // to the end: heard last
    this.#seen.set(epoch, Math.max(newest, known ?? 0));
    for (const old of this.#seen.keys()) {
      if (this.#seen.size <= mostEpochs) return;
      this.#seen.delete(old);
    }
  }
}
