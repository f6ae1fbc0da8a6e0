/**
 * Reports how runs ended: everything that is pending goes in one request, at most two requests are under way, and each
 * is sent until it is acknowledged. Reports name their lease, so a repeated one changes nothing (I3).
 *
 * A tenant whose reports could not be applied is set aside: its reports gather and go in requests of their own, one at a
 * time and ever more rarely, until it takes them. The others do not notice.
 */
import type { Failure, Report } from '../contract/wire.ts';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { checkpoint } from '../kernel/checkpoint.ts';
import { groupBy } from '../kernel/group.ts';
import { pause } from '../kernel/service.ts';

export interface ReporterOptions {
  /**
   * Resolves once the API has them, with what it could not apply; tries for as long as it takes, and throws only what
   * will not pass.
   */
  send(reports: Report[], signal: AbortSignal): Promise<readonly Failure[]>;
  /** Each report once, when there is nothing more to do about it. */
  onSettled(reports: readonly Report[]): void;
  onRefused(report: Report, error: unknown): void;
  /** A tenant takes no reports now. */
  onAside(failure: Failure): void;
}

const requestsAtOnce = 2;
const batchSize = 2_000;

export class Reporter {
  readonly #options: ReporterOptions;
  readonly #stop = new AbortController();
  #pending: Report[] = [];
  /** Of tenants that take none now. */
  readonly #aside = new Map<string, Report[]>();
  #underWay = 0;
  #unsettled = 0;
  #stuck = 0;
  #scheduled = false;
  #idle: (() => void)[] = [];

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  /** Reports that nobody has acknowledged yet. */
  get unsettled(): number {
    return this.#unsettled;
  }

  /** Those of them that wait for a tenant which takes none now. */
  get stuck(): number {
    return this.#stuck;
  }

  add(reports: readonly Report[]): void {
    if (reports.length === 0) return;
    this.#unsettled += reports.length;
    this.#line(reports);
    this.#schedule();
  }

  /** Resolves when all reports are settled. */
  async flush(): Promise<void> {
    if (this.#unsettled > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Gives up what is left. */
  stop(): void {
    this.#stop.abort();
  }

  /** Each behind those of its tenant. */
  #line(reports: readonly Report[]): void {
    for (const report of reports) {
      const aside = this.#aside.get(report.tenant);
      (aside ?? this.#pending).push(report);
      if (aside) this.#stuck++;
    }
  }

  #schedule(): void {
    if (this.#scheduled || this.#pending.length === 0 || this.#underWay >= requestsAtOnce) return;
    this.#scheduled = true;
    // whatever ends in the same turn goes along
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#sendPending();
    });
  }

  #sendPending(): void {
    while (this.#underWay < requestsAtOnce && this.#pending.length > 0) {
      const batch = this.#pending.splice(0, batchSize);
      this.#underWay++;
      void this.#send(batch).then((failed) => {
        for (const [tenant, some] of groupBy(failed, (report) => report.tenant)) this.#setAside(tenant, some);
        this.#underWay--;
        this.#schedule();
      });
    }
  }

  #setAside(tenant: string, reports: readonly Report[]): void {
    const aside = this.#aside.get(tenant);
    this.#stuck += reports.length;
    if (aside) return void aside.push(...reports);
    this.#aside.set(tenant, [...reports]);
    void this.#serveAside(tenant);
  }

  /** Until the tenant has taken all that has gathered. */
  async #serveAside(tenant: string): Promise<void> {
    const reports = this.#aside.get(tenant) ?? [];
    for (let failures = 1; reports.length > 0; ) {
      if (failures > 0) await pause(delayMs(reconnect, failures - 1), this.#stop.signal);
      const batch = reports.splice(0, batchSize);
      const failed = await this.#send(batch);
      this.#stuck -= batch.length - failed.length;
      reports.unshift(...failed);
      failures = failed.length > 0 ? failures + 1 : 0;
    }
    this.#aside.delete(tenant);
  }

  /** Answers those that are to be sent again. */
  async #send(batch: Report[]): Promise<Report[]> {
    try {
      checkpoint('worker.report');
      const failures = await this.#options.send(batch, this.#stop.signal);
      checkpoint('worker.reported');
      return this.#sort(batch, failures);
    } catch (error) {
      if (!this.#stop.signal.aborted) return await this.#refused(batch, error);
      this.#settle(batch);
      return [];
    }
  }

  #sort(batch: Report[], failures: readonly Failure[]): Report[] {
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
    const failed = batch.filter((report) => away.has(report.tenant) && !refused.has(keyOf(report)));
    this.#settle(batch.filter((report) => !away.has(report.tenant) || refused.has(keyOf(report))));
    return failed;
  }

  /** One bad report must not take the others with it. */
  async #refused(batch: Report[], error: unknown): Promise<Report[]> {
    const [first] = batch;
    if (first && batch.length === 1) {
      this.#options.onRefused(first, error);
      this.#settle(batch);
      return [];
    }
    const half = Math.ceil(batch.length / 2);
    const failed = await this.#send(batch.slice(0, half));
    return [...failed, ...(await this.#send(batch.slice(half)))];
  }

  #settle(batch: readonly Report[]): void {
    this.#unsettled -= batch.length;
    this.#options.onSettled(batch);
    if (this.#unsettled === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }
}

function keyOf({ tenant, run }: { readonly tenant: string; readonly run?: string | undefined }): string {
  return `${run} ${tenant}`;
}
