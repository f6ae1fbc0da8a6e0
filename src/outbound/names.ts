/**
 * Resolves names by the system's resolver, which has a few threads for the whole process.
 *
 * 1. A name is looked up once at a time, whoever waits for it, and its answer serves for some seconds.
 * 2. At most three names are looked up at once, so that a silent name server leaves a thread to the rest of the process.
 * 3. While a lookup takes long or fails, the last answer serves for a minute. The addresses of any answer are checked again.
 */
import { within } from '../kernel/service.ts';
import { Semaphore } from '../kernel/semaphore.ts';

/** Returns all addresses of a name; rejects if there are none. */
export type Lookup = (name: string) => Promise<readonly string[]>;

type Found = { readonly addresses: readonly string[] } | { readonly fault: string };

interface Entry {
  found: Found | undefined;
  /** Times of `performance.now()`. */
  freshUntilMs: number;
  usableUntilMs: number;
  asking: Promise<Found> | undefined;
}

/** An answer is not asked for again within this time, and a failure not within `failedMs`. */
const usualFreshMs = 5_000;
const failedMs = 2_000;
const usableMs = 60_000;
/** A name that was resolved before is not waited for longer. */
const refreshMs = 500;
/** Node's pool has four threads. */
const maxLookups = 3;
const maxNames = 10_000;

export class Names {
  readonly #lookup: Lookup;
  readonly #freshMs: number;
  readonly #entries = new Map<string, Entry>();
  readonly #threads = new Semaphore(maxLookups);

  constructor(lookup: Lookup, freshMs = usualFreshMs) {
    this.#lookup = lookup;
    this.#freshMs = freshMs;
  }

  async resolve(name: string, waitMs: number): Promise<Found> {
    const nowMs = performance.now();
    const entry = this.#entryOf(name);
    if (entry.found !== undefined && nowMs < entry.freshUntilMs) return entry.found;
    entry.asking ??= this.#ask(name, entry);
    const last = entry.found !== undefined && 'addresses' in entry.found && nowMs < entry.usableUntilMs;
    const found = await within(last ? Math.min(refreshMs, waitMs) : waitMs, entry.asking);
    if (found !== undefined) return found;
    return (last ? entry.found : undefined) ?? { fault: `no answer about ${name} within ${Math.round(waitMs)} ms` };
  }

  #entryOf(name: string): Entry {
    const known = this.#entries.get(name);
    if (known !== undefined) return known;
    const entry = { found: undefined, freshUntilMs: 0, usableUntilMs: 0, asking: undefined };
    this.#entries.set(name, entry);
    if (this.#entries.size > maxNames) this.#forget();
    return entry;
  }

  /** Forgets the names that were added first, except those being looked up. */
  #forget(): void {
    for (const [name, { asking }] of this.#entries) {
      if (this.#entries.size <= maxNames) return;
      if (asking === undefined) this.#entries.delete(name);
    }
  }

  async #ask(name: string, entry: Entry): Promise<Found> {
    const permit = await this.#threads.take(never);
    const found = await this.#find(name);
    permit?.release();
    const nowMs = performance.now();
    const isKept = 'fault' in found && nowMs < entry.usableUntilMs;
    if (!isKept) entry.found = found;
    if ('addresses' in found) entry.usableUntilMs = nowMs + usableMs;
    entry.freshUntilMs = nowMs + ('fault' in found ? failedMs : this.#freshMs);
    entry.asking = undefined;
    return entry.found ?? found;
  }

  async #find(name: string): Promise<Found> {
    try {
      const addresses = await this.#lookup(name);
      return addresses.length > 0 ? { addresses } : { fault: `${name} has no address` };
    } catch (error) {
      const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
      return { fault: `${name} cannot be resolved (${typeof code === 'string' ? code : String(error)})` };
    }
  }
}

const never = new AbortController().signal;
