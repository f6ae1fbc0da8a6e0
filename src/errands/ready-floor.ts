/**
 * Where an acquire begins. Errands that were taken are ready rows still, which a hold names; those that have ended are dead rows. An
 * acquire that began at the first of them would walk over all. So each begins after the last number below which nothing can be
 * ready: all such errands are held or gone, and no transaction that may still add one is under way.
 *
 * 1. A transaction has its number before it draws one for an errand. What an acquire did not see of the errands up to its last one
 *    belongs to transactions that were under way then. Once they have ended, an acquire that looked again from the former
 *    floor has seen all of theirs, and the floor moves.
 * 2. A transaction that stays under way for long, perhaps in another database of the server, does not hold the floor for more than
 *    a second. What it adds below is found by the looks from the first row, once a second.
 * 3. Such a look is due every ten seconds in any case: the numbers begin anew where a backup was restored.
 */

/** The input of one acquire. */
export interface Start {
  /** It begins after this number. */
  readonly floor: number;
  /** Transactions below this one were under way; null: no question. */
  readonly horizon: string | null;
}

/** The result of one acquire. */
export interface Sight {
  /** The number of the last errand that it took; null: none. */
  readonly lastId: number | null;
  /** It left no ready errand up to this number; null: none at all. */
  readonly passed: number | null;
  /** Those that were asked about have ended. */
  readonly isSettled: boolean;
  /** Those under way now are below this one. */
  readonly horizon: string;
}

interface Candidate {
  readonly id: number;
  readonly horizon: string;
  readonly atMs: number;
}

const unsettledMs = 1_000;
const lookEveryMs = 10_000;
const unprovenLookEveryMs = 1_000;
/** A look takes at most this share of the time. */
const lookShare = 0.05;

export class ReadyFloor {
  #floor = 0;
  #candidate: Candidate | undefined;
  /** The floor has moved without proof since the last look. */
  #isUnproven = false;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #lookTookMs = 0;

  /** Call it before an acquire, and the function that it returns with what the acquire saw. */
  begin(nowMs: number): { readonly start: Start; readonly note: (sight: Sight, nowMs: number) => void } {
    const candidate = this.#candidate;
    const isLook = this.#isLookDue(nowMs);
    if (isLook) {
      this.#lookedMs = nowMs;
      this.#isUnproven = false;
    }
    const start = { floor: isLook ? 0 : this.#floor, horizon: candidate?.horizon ?? null };
    return {
      start,
      note: (sight, endMs) => {
        if (isLook) this.#lookTookMs = endMs - nowMs;
        this.#note(candidate, sight, endMs);
      },
    };
  }

  #isLookDue(nowMs: number): boolean {
    const everyMs = this.#isUnproven ? unprovenLookEveryMs : lookEveryMs;
    return nowMs - this.#lookedMs >= Math.max(everyMs, this.#lookTookMs / lookShare);
  }

  #note(candidate: Candidate | undefined, { lastId, passed, isSettled, horizon }: Sight, nowMs: number): void {
    const isOld = candidate !== undefined && nowMs - candidate.atMs >= unsettledMs;
    if (candidate !== undefined && (isSettled || isOld)) {
      this.#floor = Math.max(this.#floor, Math.min(candidate.id, passed ?? candidate.id));
      if (!isSettled) this.#isUnproven = true;
    }
    // another acquire may have answered meanwhile
    if (this.#candidate !== candidate) return;
    const id = passed ?? lastId;
    const isDone = candidate === undefined || isSettled || isOld;
    if (isDone) this.#candidate = id === null || id <= this.#floor ? undefined : { id, horizon, atMs: nowMs };
  }
}
