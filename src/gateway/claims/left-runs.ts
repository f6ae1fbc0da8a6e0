/**
 * Runs that were claimed for a poll which had ended meanwhile. Its worker's next polls get them: as many as fit into its
 * places, and into the bytes of an answer.
 */
import { maxClaimBytes } from '../../contract/engine.ts';
import type { ClaimedRun } from '../../contract/wire.ts';

interface Left {
  readonly atMs: number;
  readonly run: ClaimedRun;
  /** Of its params as JSON. */
  readonly bytes: number;
}

export class LeftRuns {
  readonly #left = new Map<string, readonly Left[]>();

  put(name: string, runs: readonly ClaimedRun[], atMs: number): void {
    const added = runs.map((run) => ({ atMs, run, bytes: Buffer.byteLength(JSON.stringify(run.params)) }));
    this.#keep(name, [...(this.#left.get(name) ?? []), ...added]);
  }

  count(name: string): number {
    return this.#left.get(name)?.length ?? 0;
  }

  take(name: string, most: number): ClaimedRun[] {
    const left = this.#left.get(name) ?? [];
    const count = Math.min(most, countFitting(left));
    this.#keep(name, left.slice(count));
    return left.slice(0, count).map(({ run }) => run);
  }

  /** Runs whose worker has not polled again in time. */
  takeOlder(thanMs: number): ClaimedRun[] {
    const old: ClaimedRun[] = [];
    for (const [name, left] of this.#left) {
      for (const { atMs, run } of left) if (atMs < thanMs) old.push(run);
      this.#keep(
        name,
        left.filter(({ atMs }) => atMs >= thanMs),
      );
    }
    return old;
  }

  #keep(name: string, left: readonly Left[]): void {
    if (left.length > 0) this.#left.set(name, left);
    else this.#left.delete(name);
  }
}

/** How many of the first leave in one answer: one at least. */
function countFitting(left: readonly Left[]): number {
  let bytes = 0;
  const over = left.findIndex((each) => (bytes += each.bytes) > maxClaimBytes);
  return over < 0 ? left.length : Math.max(1, over);
}
