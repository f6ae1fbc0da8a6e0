/**
 * While several tenants are at work, the large batches of one tenant take turns. It claims or reports one smaller batch at a
 * time, and rests after each for as long as the batch took. Otherwise a flood would keep three connections of the server and this
 * process busy, and a tenant with a single run would wait for a processor at every step (I11). A tenant that is alone needs no
 * turns: for it two concurrent batches are faster.
 *
 * A tenant's turn (`TenantRecord.turn`):
 *   free    → taken    by a large report, or by a claim that is expected to be large
 *   taken   → resting  when the batch has ended
 *   resting → taken    after the rest, by the report that has waited longest
 *   resting → free     after the rest, if no report waits. A postponed claim is made now.
 *
 * Reports wait for the turn, and have precedence over claims: a worker whose reports wait needs no more runs. Claims do not wait,
 * because places would be kept for them: `choose` postpones them. Turns only affect speed, so a turn that lasts too long ends
 * for the others.
 */
import { claimLimits, needsTurn } from './choose.ts';
import type { TenantRecord, Turn } from './tenant-record.ts';
import { TenantRecords } from './tenant-records.ts';

const { smallBatch, sharedBatch } = claimLimits;
/** The maximum time of a turn including its rest. A normal turn takes a tenth of it. */
const maxTurnMs = 500;
/** Reports that have waited for this long end the rest. */
const maxReportWaitMs = 1_000;

interface Claim {
  readonly tenant: TenantRecord;
  readonly laneSet: string;
  readonly places: number;
}

export class BatchTurns {
  readonly tenants: TenantRecords;
  #onFree = (): void => {};

  constructor(tenants = new TenantRecords()) {
    this.tenants = tenants;
  }

  /** Sets the function that is called when a turn becomes free for which a claim was postponed. */
  onFree(call: () => void): void {
    this.#onFree = call;
  }

  /** The maximum number of runs in one batch of this tenant now. */
  maxBatch(tenantId: string): number {
    return this.#hasOthers(this.tenants.of(tenantId)) ? sharedBatch : Number.POSITIVE_INFINITY;
  }

  /** Makes a claim. `countRuns` returns the number of runs in its answer. */
  async claim<T>(claim: Claim, work: () => Promise<T>, countRuns: (answer: T) => number): Promise<T> {
    const { tenant, laneSet, places } = claim;
    const hasOthersAtWork = (each: TenantRecord): boolean => this.#hasOthers(each);
    const isLarge = needsTurn(tenant, places, { laneSet, now: performance.now(), hasOthersAtWork });
    const takesTurn = isLarge && tenant.turn?.isTaken !== true;
    const answer = await (takesTurn ? this.#take(tenant, turnOf(tenant), work) : work());
    const runs = countRuns(answer);
    if (runs > 0) this.#noteRuns(tenant);
    // a claim for a few places does not show how many runs are ready
    if (places > smallBatch) tenant.noteFlood(laneSet, runs > smallBatch);
    return answer;
  }

  async report<T>(tenantId: string, runs: number, work: () => Promise<T>): Promise<T> {
    const tenant = this.tenants.of(tenantId);
    const answer = await (runs > smallBatch && this.#hasOthers(tenant) ? this.#inTurn(tenant, work) : work());
    this.#noteRuns(tenant);
    return answer;
  }

  /** Whether runs of this tenant, or other tenants, are at work. */
  isShared(tenantId: string): boolean {
    const tenant = this.tenants.of(tenantId);
    return this.#hasOthers(tenant) || tenant.hasRunsAtWork(performance.now());
  }

  /** The tenant published events: it is at work, and not with runs. */
  noteEvents(tenantId: string): void {
    this.tenants.noteWork(this.tenants.of(tenantId), performance.now());
  }

  #noteRuns(tenant: TenantRecord): void {
    const now = performance.now();
    tenant.ranAt = now;
    this.tenants.noteWork(tenant, now);
  }

  async #inTurn<T>(tenant: TenantRecord, work: () => Promise<T>): Promise<T> {
    const turn = turnOf(tenant);
    if (turn.isTaken) await new Promise<void>((begin) => void turn.reports.push({ sinceMs: performance.now(), begin }));
    return this.#take(tenant, turn, work);
  }

  #take<T>(tenant: TenantRecord, turn: Turn, work: () => Promise<T>): Promise<T> {
    turn.isTaken = true;
    const begunMs = performance.now();
    let isOver = false;
    const end = (): void => {
      isOver = true;
      this.#pass(tenant, turn);
    };
    const limit = setTimeout(end, maxTurnMs);
    const rest = (): void => {
      if (isOver) return;
      clearTimeout(limit);
      setTimeout(end, restMs(turn, performance.now() - begunMs));
    };
    const working = work();
    void working.then(rest, rest);
    return working;
  }

  /** Passes the turn to the report that has waited longest, or otherwise to a claim. */
  #pass(tenant: TenantRecord, turn: Turn): void {
    const next = turn.reports.shift();
    if (next !== undefined) return next.begin();
    turn.isTaken = false;
    if (turn.isWanted) {
      turn.isWanted = false;
      this.#onFree();
    }
    if (!turn.isTaken && tenant.turn === turn) tenant.turn = undefined;
  }

  #hasOthers(tenant: TenantRecord): boolean {
    return this.tenants.hasOthersAtWork(tenant, performance.now());
  }
}

function turnOf(tenant: TenantRecord): Turn {
  tenant.turn ??= { isTaken: false, reports: [], isWanted: false };
  return tenant.turn;
}

/** The rest takes as long as the turn, unless a report has waited for too long. */
function restMs({ reports }: Turn, tookMs: number): number {
  const waitedMs = performance.now() - (reports[0]?.sinceMs ?? Number.POSITIVE_INFINITY);
  return waitedMs > maxReportWaitMs ? 0 : Math.min(tookMs, maxTurnMs - tookMs);
}
