/**
 * The invalidations that this gateway has heard of, for workers to drop what they have cached. They ride on the answers to
 * polls and heartbeats.
 *
 * Each gateway numbers its invalidations from 1, under an epoch of its own, and a worker says of each epoch up to which
 * number it knows. A worker that does not know the epoch cannot tell what it has missed: it drops its whole cache when it
 * first hears of it, and counts from there. So a gateway that may itself have missed some begins a new epoch.
 */
import type { Invalidation, Seen, Signals } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';

/** A worker that is further behind drops everything. */
const maxKept = 1_000;

export class InvalidationLog {
  readonly #kept: Invalidation[] = [];
  #epoch = newId();
  #newest = 0;

  /** Undefined: some may have been missed, because the hints come over a connection that was lost. */
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

  /** What a worker that has seen this much does not know. Of more than is kept it gets the latest, and counts the rest. */
  after(seen: Seen): Pick<Signals, 'invalidate' | 'epoch' | 'newest'> {
    const behind = Math.max(0, this.#newest - (seen[this.#epoch] ?? this.#newest));
    return { invalidate: behind === 0 ? [] : this.#kept.slice(-behind), epoch: this.#epoch, newest: this.#newest };
  }
}
