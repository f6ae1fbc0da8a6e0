/** Runs that were claimed for a poll which had ended meanwhile: its worker's next poll gets them, as many as fit. */
import type { ClaimedRun } from '../contract/wire.ts';

interface Left {
  readonly atMs: number;
  readonly run: ClaimedRun;
}

export class LeftRuns {
  readonly #left = new Map<string, readonly Left[]>();

  put(name: string, runs: readonly ClaimedRun[], atMs: number): void {
    this.#keep(name, [...(this.#left.get(name) ?? []), ...runs.map((run) => ({ atMs, run }))]);
  }

  count(name: string): number {
    return this.#left.get(name)?.length ?? 0;
  }

  take(name: string, most: number): ClaimedRun[] {
    const left = this.#left.get(name) ?? [];
    this.#keep(name, left.slice(most));
    return left.slice(0, most).map(({ run }) => run);
  }

  /** Those for whom nobody came. */
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
