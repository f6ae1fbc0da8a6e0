/**
 * Reports the results of runs. All pending reports go in one request, each tenant has at most two requests under way, and each
 * report is sent until it is acknowledged. Reports contain their lease, so a repeated one changes nothing (I3).
 *
 * A tenant with many reports gets requests of its own, so that tenants with few need not wait until those are applied.
 *
 * A tenant whose reports could not be applied is set aside: its reports accumulate and go in requests of their own, one at a
 * time with growing pauses, until it accepts them. Other tenants are not affected.
 */
import type { Failure, Report } from '../contract/wire.ts';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { checkpoint } from './checkpoints.ts';
import { groupBy } from '../kernel/group-by.ts';
import { isolateRejected } from '../kernel/isolate-rejected.ts';
import { pause } from '../kernel/service.ts';

export interface ReporterOptions {
  /**
   * Resolves once the API has the reports, with those that it could not apply. Retries without a limit, and throws permanent
   * errors only.
   */
  send(reports: Report[], signal: AbortSignal): Promise<readonly Failure[]>;
  /** Called once for each report, when it needs no more work. */
  onSettled(reports: readonly Report[]): void;
  onRefused(report: Report, error: unknown): void;
  /** A tenant accepts no reports now. */
  onAside(failure: Failure): void;
}

/**
 * The maximum numbers of requests under way: of one tenant, of all tenants with many reports, and in all. The rest is for
 * tenants with few.
 */
const requestsAtOnce = { tenant: 2, ofMany: 6, all: 8 } as const;
/** The maximum size of one request: reasons may be long, and the API limits the length of a body. */
const largestBatch = { reports: 2_000, bytes: 1_000_000 } as const;
/** A tenant with this many reports gets requests of its own. */
const manyReports = 100;

export class Reporter {
  readonly #options: ReporterOptions;
  readonly #stop = new AbortController();
  readonly #pending = new Map<string, Report[]>();
  /** Requests with reports of a tenant, and its unacknowledged reports. */
  readonly #requests = new Map<string, number>();
  readonly #ofTenant = new Map<string, number>();
  /** Reports of tenants that accept none now. */
  readonly #aside = new Map<string, Report[]>();
  #underWay = 0;
  /** The number of those with reports of a tenant that has many. */
  #ofMany = 0;
  #unsettled = 0;
  #stuck = 0;
  #scheduled = false;
  #idle: (() => void)[] = [];

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  /** The number of unacknowledged reports. */
  get unsettled(): number {
    return this.#unsettled;
  }

  /** The number of those that wait for a tenant that accepts none now. */
  get stuck(): number {
    return this.#stuck;
  }

  /** Tenants with more than this many unacknowledged reports. */
  tenantsWith(moreThan: number): string[] {
    return [...this.#ofTenant].filter(([, count]) => count > moreThan).map(([tenant]) => tenant);
  }

  add(reports: readonly Report[]): void {
    if (reports.length === 0) return;
    this.#unsettled += reports.length;
    this.#count(reports, 1);
    this.#enqueue(reports);
    this.#schedule();
  }

  /** Resolves when all reports are settled. */
  async flush(): Promise<void> {
    if (this.#unsettled > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Abandons the remaining reports. */
  stop(): void {
    this.#stop.abort();
  }

  /** Queues each report behind those of its tenant. */
  #enqueue(reports: readonly Report[]): void {
    for (const [tenant, some] of groupBy(reports, (report) => report.tenant)) {
      const aside = this.#aside.get(tenant);
      const line = aside ?? this.#pending.get(tenant) ?? [];
      for (const report of some) line.push(report);
      if (aside) this.#stuck += some.length;
      else this.#pending.set(tenant, line);
    }
  }

  #schedule(): void {
    if (this.#scheduled || this.#pending.size === 0) return;
    this.#scheduled = true;
    // reports that are added in the same turn share the request
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#sendPending();
    });
  }

  #sendPending(): void {
    while (this.#underWay < requestsAtOnce.all) {
      const { batch, isOfMany } = this.#nextBatch();
      if (batch.length === 0) return;
      const tenants = new Set(batch.map((report) => report.tenant));
      this.#underWay++;
      if (isOfMany) this.#ofMany++;
      for (const tenant of tenants) add(this.#requests, tenant, 1);
      void this.#send(batch).then((failed) => {
        for (const [tenant, some] of groupBy(failed, (report) => report.tenant)) this.#setAside(tenant, some);
        this.#underWay--;
        if (isOfMany) this.#ofMany--;
        for (const tenant of tenants) add(this.#requests, tenant, -1);
        this.#schedule();
      });
    }
  }

  /** The reports of all tenants with few together; otherwise those of one tenant with many, each tenant in turn. */
  #nextBatch(): { batch: Report[]; isOfMany: boolean } {
    const free = [...this.#pending].filter(([tenant]) => (this.#requests.get(tenant) ?? 0) < requestsAtOnce.tenant);
    // further reports of a tenant with many under way do not count as few: tenants that share their request would wait with them
    const few = free.filter(([tenant]) => (this.#ofTenant.get(tenant) ?? 0) < manyReports);
    const isOfMany = few.length === 0;
    const lines = isOfMany ? free.slice(0, this.#ofMany < requestsAtOnce.ofMany ? 1 : 0) : few;
    const batch = takeFrom(lines.map(([, line]) => line));
    for (const [tenant, line] of lines) {
      this.#pending.delete(tenant);
      if (line.length > 0) this.#pending.set(tenant, line);
    }
    return { batch, isOfMany };
  }

  #setAside(tenant: string, reports: readonly Report[]): void {
    const aside = this.#aside.get(tenant);
    this.#stuck += reports.length;
    if (aside) return void aside.push(...reports);
    this.#aside.set(tenant, [...reports]);
    void this.#serveAside(tenant);
  }

  /** Retries until the tenant has accepted all accumulated reports. */
  async #serveAside(tenant: string): Promise<void> {
    const reports = this.#aside.get(tenant) ?? [];
    for (let failures = 1; reports.length > 0; ) {
      if (failures > 0) await pause(delayMs(reconnect, failures - 1), this.#stop.signal);
      const batch = takeFrom([reports]);
      const failed = await this.#send(batch);
      this.#stuck -= batch.length - failed.length;
      reports.unshift(...failed);
      // a tenant that accepts some is not unavailable
      failures = failed.length === batch.length ? failures + 1 : Math.min(failed.length, 1);
    }
    this.#aside.delete(tenant);
  }

  /** Returns the reports to send again. A report that the gateway rejects is abandoned, and does not hold back the others. */
  async #send(batch: readonly Report[]): Promise<Report[]> {
    const again: Report[] = [];
    const send = async (some: readonly Report[]): Promise<void> => {
      again.push(...(await this.#sendOnce(some)));
    };
    const rejected = await isolateRejected(batch, send, { isRejection: () => true });
    for (const [report, error] of rejected) this.#options.onRefused(report, error);
    if (rejected.size > 0) this.#settle([...rejected.keys()]);
    return again;
  }

  async #sendOnce(batch: readonly Report[]): Promise<Report[]> {
    try {
      checkpoint('worker.report');
      const failures = await this.#options.send([...batch], this.#stop.signal);
      checkpoint('worker.reported');
      return this.#sort(batch, failures);
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
      this.#settle(batch);
      return [];
    }
  }

  #sort(batch: readonly Report[], failures: readonly Failure[]): Report[] {
    if (failures.length === 0) {
      this.#settle(batch);
      return [];
    }
    const refused = new Map(failures.flatMap((each) => (each.run === undefined ? [] : [[keyOf(each), each.detail]])));
    const away = new Map(failures.flatMap((each) => (each.run === undefined ? [[each.tenant, each]] : [])));
    for (const failure of away.values()) if (!this.#aside.has(failure.tenant)) this.#options.onAside(failure);
    for (const report of batch) {
      const detail = refused.get(keyOf(report));
      if (detail !== undefined) this.#options.onRefused(report, new Error(detail));
    }
    const again = toSendAgain(failures);
    const isFailed = (report: Report): boolean =>
      (again.has(report.tenant) || again.has(keyOf(report))) && !refused.has(keyOf(report));
    this.#settle(batch.filter((report) => !isFailed(report)));
    return batch.filter(isFailed);
  }

  #count(reports: readonly Report[], sign: 1 | -1): void {
    for (const [tenant, some] of groupBy(reports, (report) => report.tenant))
      add(this.#ofTenant, tenant, sign * some.length);
  }

  #settle(batch: readonly Report[]): void {
    this.#unsettled -= batch.length;
    this.#count(batch, -1);
    this.#options.onSettled(batch);
    if (this.#unsettled === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }
}

/** Takes reports from the lists, one list after the other, until the request is full. */
function takeFrom(lines: readonly Report[][]): Report[] {
  const batch: Report[] = [];
  let bytes = 0;
  for (const line of lines) {
    const before = batch.length;
    for (const report of line) {
      bytes += bytesOf(report);
      if (batch.length === largestBatch.reports || bytes > largestBatch.bytes) break;
      batch.push(report);
    }
    line.splice(0, batch.length - before);
  }
  return batch;
}

/** The size as JSON, or a little more. */
function bytesOf({ reason, result }: Report): number {
  return 300 + jsonBytes(reason) + jsonBytes(result);
}

function jsonBytes(text: string | null | undefined): number {
  return text === null || text === undefined ? 0 : Buffer.byteLength(JSON.stringify(text));
}

/** Tenants whose reports all failed, and the failed runs of other tenants. */
function toSendAgain(failures: readonly Failure[]): ReadonlySet<string> {
  const whole = failures.filter(({ run }) => run === undefined);
  return new Set(whole.flatMap(({ tenant, runs }) => runs?.map((run) => keyOf({ tenant, run })) ?? [tenant]));
}

function add(counts: Map<string, number>, key: string, more: number): void {
  const count = (counts.get(key) ?? 0) + more;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}

function keyOf({ tenant, run }: { readonly tenant: string; readonly run?: string | undefined }): string {
  return `${run} ${tenant}`;
}
