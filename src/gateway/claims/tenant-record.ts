/**
 * All data of a gateway about one tenant that it needs to hand out its runs fairly. All times are milliseconds of one monotonic
 * clock. `choose.ts` reads the record, the desks write it. Losing it only costs time.
 *
 * A record has three parts, each with states of its own:
 *
 * 1. Readiness, for each set of lanes that some worker polls for.
 *      idle   → queued  by a hint about these lanes, its scheduler's report, or a doubt (its scheduler is silent)
 *      queued → asked   when `choose` picks it
 *      asked  → idle    when it gave fewer runs than it was asked for
 *      asked  → queued  when it filled all places, when the claim failed, or when a hint arrived meanwhile
 *    (The queues themselves are in `tenant-records.ts`, because they are ordered.)
 *
 * 2. Pace: how fast it answers. A slow tenant costs the others nothing, because no places are kept for it.
 *      unknown → known   by an answer in time. Places are kept for it for longer than for an unknown tenant.
 *      any     → slow    when it is late or fails. After a failure it is paused, longer each time.
 *      slow    → known   by an answer in time
 *      slow, known → unknown  after a minute without an answer
 *
 * 3. Turn: while other tenants are at work, its large batches come one at a time (`batch-turns.ts`).
 */
import { type Backoff, delayMs } from '../../kernel/backoff.ts';

export const tenantTimes = {
  /** How long a hint counts as recent. Tenants with a recent one are asked again if hints may have been lost. */
  recentHintMs: 10_000,
  /** The maximum age of a scheduler's report. A tenant that was asked within this time is not asked again because of it. */
  reportAgeMs: 3_000,
  /** How long places are kept for a tenant that is known to answer in time, and for an unknown one. */
  knownPatienceMs: 100,
  unknownPatienceMs: 25,
  /** A tenant that had a run or published events within this time is at work. */
  atWorkMs: 5_000,
  /** How long data counts. A record without newer data is deleted, because the tenant may be gone. */
  memoryMs: 60_000,
};
export type TenantTimes = typeof tenantTimes;

const pauses: Backoff = { firstMs: 100, capMs: 10_000, jitter: 0.5 };
const never = Number.NEGATIVE_INFINITY;

/** A turn for large batches. */
export interface Turn {
  isTaken: boolean;
  /** Reports that wait for the turn, in order. */
  readonly reports: { readonly sinceMs: number; readonly begin: () => void }[];
  /** A claim was postponed because of this turn. */
  isWanted: boolean;
}

export class TenantRecord {
  readonly id: string;
  readonly #times: TenantTimes;
  /** The last hint or report that it has ready runs. */
  hintedAt = never;
  /** The last claim for each set of lanes. */
  readonly askedAt = new Map<string, number>();
  /** The claims under way, by their lanes (`Ask` of `choose.ts`). */
  readonly asks = new Map<string, object>();
  /** The last answer in time. */
  knownAt = never;
  /** The last time that it was late or failed. */
  slowAt = never;
  pausedUntil = never;
  #failures = 0;
  /** The last time that it had a run or published events. */
  workedAt = never;
  /** The last time that a run was handed out or reported. */
  ranAt = never;
  /** The sets of lanes for which its last claim gave many runs. */
  readonly #flooded = new Set<string>();
  turn: Turn | undefined;
  /** Until then it stores no further group of events (`bus/publish-pace.ts`). */
  restsUntil = never;

  constructor(id: string, times: TenantTimes) {
    this.id = id;
    this.#times = times;
  }

  hasRecentHint(now: number): boolean {
    return now - this.hintedAt <= this.#times.recentHintMs;
  }

  wasJustAsked(laneSet: string, now: number): boolean {
    return now - (this.askedAt.get(laneSet) ?? never) < this.#times.reportAgeMs;
  }

  isSlow(now: number): boolean {
    return now - this.slowAt < this.#times.memoryMs;
  }

  isKnown(now: number): boolean {
    return now - this.knownAt < this.#times.memoryMs;
  }

  /** How long places are kept for it. */
  patienceMs(now: number): number {
    return this.isKnown(now) ? this.#times.knownPatienceMs : this.#times.unknownPatienceMs;
  }

  isAtWork(now: number): boolean {
    return now - this.workedAt <= this.#times.atWorkMs;
  }

  hasRunsAtWork(now: number): boolean {
    return now - this.ranAt <= this.#times.atWorkMs;
  }

  /** Whether its next claim for these lanes is expected to be a large one. */
  isFlooded(laneSet: string, now: number): boolean {
    return this.isAtWork(now) && this.#flooded.has(laneSet);
  }

  noteFlood(laneSet: string, isFlooded: boolean): void {
    if (isFlooded) this.#flooded.add(laneSet);
    else this.#flooded.delete(laneSet);
  }

  /** Forgets the data about sets of lanes, except claims under way. */
  forgetLanes(): void {
    this.askedAt.clear();
    this.#flooded.clear();
  }

  answeredInTime(now: number): void {
    this.knownAt = now;
    this.slowAt = never;
    this.resume();
  }

  answeredLate(now: number): void {
    this.slowAt = now;
    this.resume();
  }

  /** Its patience is over, and it has not answered yet. */
  isOverdue(now: number): void {
    this.#becomeSlow(now);
  }

  failed(now: number, random: () => number = Math.random): void {
    this.#becomeSlow(now);
    // a claim that began before the pause does not count as another failure
    if (now >= this.pausedUntil) this.pausedUntil = now + delayMs(pauses, this.#failures++, random);
  }

  /** Ends its pause: it answers again, or the server that all tenants share does. */
  resume(): void {
    this.#failures = 0;
    this.pausedUntil = never;
  }

  #becomeSlow(now: number): void {
    if (!this.isSlow(now)) this.resume();
    this.slowAt = now;
  }

  isExpired(now: number): boolean {
    if (this.asks.size > 0 || this.turn !== undefined) return false;
    const newest = Math.max(this.hintedAt, this.knownAt, this.slowAt, this.workedAt, ...this.askedAt.values());
    return now - newest >= this.#times.memoryMs;
  }
}
