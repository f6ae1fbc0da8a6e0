/**
 * While several tenants are at work, the large batches of one take turns: it claims or reports, one at a time, in smaller
 * pieces, and rests after each for as long as that took. A flood would otherwise keep three connections of the server and
 * this process busy, and whoever has a single run would wait for a processor at every step (I11). A tenant that is alone
 * may have it all: there two batches beside each other are faster.
 *
 * Reports wait for their turn, and come before claims: whose reports wait needs no more runs. A claim does not wait, since
 * places are kept for it: its desk is called when there is a turn for it. Only speed rests on all this: a turn that lasts too
 * long is over for the others.
 */

/** A batch of so many is nobody's burden. */
const few = 25;
/** What one batch holds at most while others are at work. */
const largestPiece = 250;
/** Who had a run so lately is at work. */
const latelyMs = 5_000;
/** What a turn lasts at most, with the rest after it; a tenth of that where nothing is wrong. */
const longestTurnMs = 500;
/** Reports that have waited for so long end the rest: their worker will not wait for ever. */
const longestWaitMs = 1_000;

interface Line {
  isTaken: boolean;
  /** Reports, in their order, and since when. */
  readonly waiting: { readonly sinceMs: number; readonly begin: () => void }[];
  /** A claim would have been made. */
  isWanted: boolean;
}

export class BatchTurns {
  /** When each tenant last had a run, the latest at the end. */
  readonly #atWork = new Map<string, number>();
  /** For which lanes a tenant's last claim was a large one. */
  readonly #flooded = new Map<string, Set<string>>();
  readonly #lines = new Map<string, Line>();
  #onFree = (): void => {};

  /** Called when a tenant whose claim had to wait may be asked; it is now or not at all. */
  onFree(call: () => void): void {
    this.#onFree = call;
  }

  /** How much of this tenant goes into one batch now. */
  largestOf(tenant: string): number {
    return this.#hasOthers(tenant) ? largestPiece : Number.POSITIVE_INFINITY;
  }

  /** Whether a claim for these lanes has to wait for a turn. It is taken to be as large as the one before. */
  mustWait(tenant: string, lanes: string, places: number): boolean {
    const line = this.#lines.get(tenant);
    if (!line?.isTaken || !this.#isLarge(tenant, lanes, places)) return false;
    line.isWanted = true;
    return true;
  }

  async claim<T>(
    { tenant, lanes, places }: { readonly tenant: string; readonly lanes: string; readonly places: number },
    work: () => Promise<T>,
    sizeOf: (answer: T) => number,
  ): Promise<T> {
    const line = this.#isLarge(tenant, lanes, places) ? this.#lineOf(tenant) : undefined;
    const answer = await (line === undefined || line.isTaken ? work() : this.#take(tenant, line, work));
    const runs = sizeOf(answer);
    if (runs > 0) this.#note(tenant);
    // one for a few places says nothing of how many there are
    if (places > few) this.#noteSize(tenant, lanes, runs);
    return answer;
  }

  async report<T>(tenant: string, runs: number, work: () => Promise<T>): Promise<T> {
    const answer = await (runs > few && this.#hasOthers(tenant) ? this.#inTurn(tenant, work) : work());
    this.#note(tenant);
    return answer;
  }

  /** There is no such tenant any more, or it is not at work: the next claim says anew how large it is. */
  forget(tenant: string): void {
    this.#atWork.delete(tenant);
    this.#flooded.delete(tenant);
  }

  async #inTurn<T>(tenant: string, work: () => Promise<T>): Promise<T> {
    const line = this.#lineOf(tenant);
    if (line.isTaken) await new Promise<void>((begin) => void line.waiting.push({ sinceMs: performance.now(), begin }));
    return this.#take(tenant, line, work);
  }

  #take<T>(tenant: string, line: Line, work: () => Promise<T>): Promise<T> {
    line.isTaken = true;
    const begunMs = performance.now();
    let isOver = false;
    const end = (): void => {
      isOver = true;
      this.#pass(tenant, line);
    };
    const limit = setTimeout(end, longestTurnMs);
    const rest = (): void => {
      if (isOver) return;
      clearTimeout(limit);
      setTimeout(end, restMs(line, performance.now() - begunMs));
    };
    const working = work();
    void working.then(rest, rest);
    return working;
  }

  /** To the report that has waited longest, or else to a claim. */
  #pass(tenant: string, line: Line): void {
    const next = line.waiting.shift();
    if (next !== undefined) return next.begin();
    line.isTaken = false;
    if (line.isWanted) {
      line.isWanted = false;
      this.#onFree();
    }
    if (!line.isTaken) this.#lines.delete(tenant);
  }

  #lineOf(tenant: string): Line {
    const line = this.#lines.get(tenant) ?? { isTaken: false, waiting: [], isWanted: false };
    this.#lines.set(tenant, line);
    return line;
  }

  #isLarge(tenant: string, lanes: string, places: number): boolean {
    return places > few && this.#hasOthers(tenant) && this.#flooded.get(tenant)?.has(lanes) === true;
  }

  #noteSize(tenant: string, lanes: string, runs: number): void {
    const flooded = this.#flooded.get(tenant) ?? new Set<string>();
    if (runs > few) this.#flooded.set(tenant, flooded.add(lanes));
    else if (flooded.delete(lanes) && flooded.size === 0) this.#flooded.delete(tenant);
  }

  #note(tenant: string): void {
    this.#atWork.delete(tenant);
    this.#atWork.set(tenant, performance.now());
  }

  #hasOthers(tenant: string): boolean {
    const sinceMs = performance.now() - latelyMs;
    for (const [each, atMs] of this.#atWork) {
      if (atMs < sinceMs) this.forget(each);
      else if (each !== tenant) return true;
    }
    return false;
  }
}

/** As long as the turn took, unless somebody has waited for too long. */
function restMs({ waiting }: Line, tookMs: number): number {
  const waitedMs = performance.now() - (waiting[0]?.sinceMs ?? Number.POSITIVE_INFINITY);
  return waitedMs > longestWaitMs ? 0 : Math.min(tookMs, longestTurnMs - tookMs);
}
