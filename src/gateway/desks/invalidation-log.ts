/**
 * The invalidations that this gateway has received, so that workers drop cached objects. They are sent with the answers to
 * polls and heartbeats.
 *
 * Each gateway numbers its invalidations from 1, under an epoch of its own. A worker sends the last number that it knows for each
 * epoch. A worker that does not know the epoch may have missed any invalidation: it drops its whole cache, and counts from the
 * current number. So a gateway that may itself have missed some begins a new epoch.
 */
import type { Invalidation, Seen, Signals } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';

/** A worker that is further behind drops its whole cache. */
const maxKept = 1_000;

export class InvalidationLog {
  readonly #kept: Invalidation[] = [];
  #epoch = newId();
  #newest = 0;

  /** Undefined: some invalidations may have been missed, because the connection for hints was lost. */
  add(invalidation: Invalidation | undefined): void {
    if (invalidation === undefined) return this.#beginEpoch();
    this.#newest++;
    this.#kept.push(invalidation);
    if (this.#kept.length > maxKept) this.#kept.shift();
  }

  #beginEpoch(): void {
    this.#epoch = newId();
    this.#newest = 0;
    this.#kept.length = 0;
  }

  /**
   * The invalidations after those that a worker has seen. If more are missing than are kept, it gets the latest, and their
   * count.
   */
  after(seen: Seen): Pick<Signals, 'invalidate' | 'epoch' | 'newest'> {
    const behind = Math.max(0, this.#newest - (seen[this.#epoch] ?? this.#newest));
    return { invalidate: behind === 0 ? [] : this.#kept.slice(-behind), epoch: this.#epoch, newest: this.#newest };
  }
}
