/**
 * While several tenants are at work, the large batches of one take turns: it claims or reports, one batch at a time, in
 * smaller batches, and rests after each for as long as that took. A flood would otherwise keep three connections of the
 * server and this process busy, and a tenant with a single run would wait for a processor at every step (I11). A tenant
 * that is alone needs no turns: for it two batches side by side are faster.
 *
 * A tenant's turn (`TenantRecord.turn`):
 *   free    → taken    by a large report, or by a claim that is expected to be large
 *   taken   → resting  when the batch has ended
 *   resting → taken    after the rest, by the report that has waited longest
 *   resting → free     after the rest, if no report waits. A claim that was put off is made now.
 *
 * Reports wait for the turn, and come before claims: a worker whose reports wait needs no more runs. Claims do not wait,
 * because places would be kept for them: `choose` puts them off. Only speed rests on turns, so a turn that lasts too long
 * ends for the others.
 */
import { claimLimits, needsTurn } from './choose.ts';
import type { TenantRecord, Turn } from './tenant-record.ts';
import { TenantRecords } from './tenant-records.ts';

const { smallBatch, sharedBatch } = claimLimits;
/** How long a turn lasts at most, with the rest after it; a tenth of that where nothing is wrong. */
const maxTurnMs = 500;
/** Reports that have waited for this long end the rest: their worker does not wait for ever. */
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

  /** Called when the turn of a tenant has become free whose claim was put off. */
  onFree(call: () => void): void {
    this.#onFree = call;
  }

  /** How many runs go into one batch of this tenant now. */
  maxBatch(tenantId: string): number {
    return this.#hasOthers(this.tenants.of(tenantId)) ? sharedBatch : Number.POSITIVE_INFINITY;
  }

  /** Makes a claim. `countRuns` tells how many runs its answer holds. */
  async claim<T>(claim: Claim, work: () => Promise<T>, countRuns: (answer: T) => number): Promise<T> {
    const { tenant, laneSet, places } = claim;
    const hasOthersAtWork = (each: TenantRecord): boolean => this.#hasOthers(each);
    const isLarge = needsTurn(tenant, places, { laneSet, now: performance.now(), hasOthersAtWork });
    const takesTurn = isLarge && tenant.turn?.isTaken !== true;
    const answer = await (takesTurn ? this.#take(tenant, turnOf(tenant), work) : work());
    const runs = countRuns(answer);
    if (runs > 0) this.tenants.noteRun(tenant, performance.now());
    // a claim for a few places does not tell how many runs there are
    if (places > smallBatch) tenant.noteFlood(laneSet, runs > smallBatch);
    return answer;
  }

  async report<T>(tenantId: string, runs: number, work: () => Promise<T>): Promise<T> {
    const tenant = this.tenants.of(tenantId);
    const answer = await (runs > smallBatch && this.#hasOthers(tenant) ? this.#inTurn(tenant, work) : work());
    this.tenants.noteRun(tenant, performance.now());
    return answer;
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

  /** Passes the turn to the report that has waited longest, or else to a claim. */
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

/** As long as the turn took, unless a report has waited for too long. */
function restMs({ reports }: Turn, tookMs: number): number {
  const waitedMs = performance.now() - (reports[0]?.sinceMs ?? Number.POSITIVE_INFINITY);
  return waitedMs > maxReportWaitMs ? 0 : Math.min(tookMs, maxTurnMs - tookMs);
}
