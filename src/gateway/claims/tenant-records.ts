/**
 * The records of all tenants (`tenant-record.ts`), and one queue for each set of lanes that workers poll for: the tenants that
 * may have ready runs in these lanes. The tenant that has waited longest comes first.
 */
import { TenantRecord, type TenantTimes, tenantTimes } from './tenant-record.ts';

interface Queue {
  readonly lanes: ReadonlySet<string>;
  readonly tenants: Set<TenantRecord>;
}

/**
 * The maximum number of lane sets and lanes. Workers come and go, and each may poll for lanes of its own (up to 1,900 lanes of 250
 * bytes). Beyond the limit, all queues start anew.
 */
const laneLimits = { sets: 1_000, lanes: 50_000 } as const;

export class TenantRecords {
  readonly #times: TenantTimes;
  readonly #byId = new Map<string, TenantRecord>();
  readonly #queues = new Map<string, Queue>();
  /** The number of lanes of all queues together. */
  #lanes = 0;
  /** The tenant that was at work last, and the last time that any other tenant was. */
  #lastAtWork: TenantRecord | undefined;
  #othersAtWorkAt = Number.NEGATIVE_INFINITY;

  constructor(times: Partial<TenantTimes> = {}) {
    this.#times = { ...tenantTimes, ...times };
  }

  get size(): number {
    return this.#byId.size;
  }

  of(id: string): TenantRecord {
    const record = this.#byId.get(id) ?? new TenantRecord(id, this.#times);
    this.#byId.set(id, record);
    return record;
  }

  /** The tenants that may have ready runs in these lanes. */
  queueOf(laneSet: string): Iterable<TenantRecord> {
    return this.#queues.get(laneSet)?.tenants ?? [];
  }

  /** Returns true if workers poll for these lanes for the first time. The queue then begins with tenants that had a recent hint. */
  open(laneSet: string, lanes: readonly string[], now: number): boolean {
    if (this.#queues.has(laneSet)) return false;
    this.#lanes += lanes.length;
    if (this.#queues.size >= laneLimits.sets || this.#lanes > laneLimits.lanes) this.#forgetLanes(lanes.length);
    const hinted = [...this.#byId.values()].filter((record) => record.hasRecentHint(now));
    this.#queues.set(laneSet, { lanes: new Set(lanes), tenants: new Set(hinted) });
    return true;
  }

  /** Runs of this tenant became ready, in these lanes or in any. */
  hint(id: string, now: number, lanes?: readonly string[]): void {
    const record = this.of(id);
    record.hintedAt = now;
    for (const queue of this.#queues.values())
      if (lanes === undefined || lanes.some((lane) => queue.lanes.has(lane))) queue.tenants.add(record);
  }

  /** Its scheduler reports ready runs. The report may be up to 3 s old, and names no lanes. */
  remind(id: string, now: number): void {
    const record = this.of(id);
    record.hintedAt = now;
    for (const [laneSet, queue] of this.#queues) if (!record.wasJustAsked(laneSet, now)) queue.tenants.add(record);
  }

  /** Its scheduler is silent: it is asked once. */
  doubt(id: string): void {
    this.#queueEverywhere(this.of(id));
  }

  /** Something about this tenant changed, and the claim after its last hint may have failed because of the old state. */
  recheck(id: string, now: number): void {
    const record = this.#byId.get(id);
    if (record?.hasRecentHint(now)) this.#queueEverywhere(record);
  }

  /** Hints may have been lost, and the server that all tenants share may have been unreachable. */
  recheckAll(now: number): void {
    for (const record of this.#byId.values()) {
      record.resume();
      if (record.hasRecentHint(now)) this.#queueEverywhere(record);
    }
  }

  /** It is asked for these lanes now. */
  take(record: TenantRecord, laneSet: string, now: number): void {
    this.#queues.get(laneSet)?.tenants.delete(record);
    record.askedAt.set(laneSet, now);
  }

  /** A claim for these lanes may have left ready runs: the tenant goes to the end of the queue. */
  putBack(record: TenantRecord, laneSet: string): void {
    this.#queues.get(laneSet)?.tenants.add(record);
  }

  /** It is unavailable, and is not asked again before the next hint. A hint after `since` counts. */
  dropUnlessHinted(record: TenantRecord, since: number): void {
    if (record.hintedAt >= since) return;
    record.hintedAt = Number.NEGATIVE_INFINITY;
    record.askedAt.clear();
    for (const { tenants } of this.#queues.values()) tenants.delete(record);
  }

  /** The tenant no longer exists. */
  delete(record: TenantRecord): void {
    this.#byId.delete(record.id);
    for (const { tenants } of this.#queues.values()) tenants.delete(record);
  }

  deleteExpired(now: number): void {
    const queues = [...this.#queues.values()];
    for (const record of this.#byId.values())
      if (record.isExpired(now) && !queues.some(({ tenants }) => tenants.has(record))) this.#byId.delete(record.id);
  }

  /** The tenant had a run or published events. */
  noteWork(record: TenantRecord, now: number): void {
    if (this.#lastAtWork !== undefined && this.#lastAtWork !== record) this.#othersAtWorkAt = this.#lastAtWork.workedAt;
    this.#lastAtWork = record;
    record.workedAt = now;
  }

  /** Whether a tenant other than this one is at work. */
  hasOthersAtWork(record: TenantRecord, now: number): boolean {
    const last = this.#lastAtWork;
    if (last !== undefined && last !== record) return last.isAtWork(now);
    return now - this.#othersAtWorkAt <= this.#times.atWorkMs;
  }

  #forgetLanes(lanesLeft: number): void {
    this.#queues.clear();
    this.#lanes = lanesLeft;
    for (const record of this.#byId.values()) record.forgetLanes();
  }

  #queueEverywhere(record: TenantRecord): void {
    for (const { tenants } of this.#queues.values()) tenants.add(record);
  }
}
