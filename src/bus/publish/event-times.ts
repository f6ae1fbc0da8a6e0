/**
 * The time `t` of events that their publisher did not give a time. Receivers keep the newest `t` of a URL, and drop an event with
 * the same URL and the same `t`. So these times grow strictly for each URL within this process.
 *
 * 1. A time of the publisher is never changed. It counts for the next time of the URL unless it lies in the future.
 * 2. A URL is remembered for one to two seconds: after that, the clock alone is enough.
 */

/** How long a generation of URLs is kept, and the maximum number of its URLs. */
const generation = { ms: 1_000, urls: 100_000 } as const;
/** A time of a publisher counts if it is at most so far ahead. */
const maxAheadMs = 1_000;

export class EventTimes {
  #recent = new Map<string, number>();
  #older = new Map<string, number>();
  #since = Number.NEGATIVE_INFINITY;

  /** The time of an event: `given` by its publisher, or the next one of its URL. */
  next(url: string, given: number | undefined, now: number): number {
    if (given !== undefined && given > now + maxAheadMs) return given;
    this.#turn(now);
    const last = this.#recent.get(url) ?? this.#older.get(url) ?? Number.NEGATIVE_INFINITY;
    const t = given ?? Math.max(now, last + 1);
    if (t > last) this.#recent.set(url, t);
    return t;
  }

  #turn(now: number): void {
    const isOver = now - this.#since > generation.ms || now < this.#since;
    if (!isOver && this.#recent.size < generation.urls) return;
    this.#older = this.#recent;
    this.#recent = new Map();
    this.#since = now;
  }
}
