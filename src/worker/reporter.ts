/**
 * Reports how runs ended: everything that is pending goes in one request, at most two requests are under way, and each
 * is sent until it is acknowledged. Reports name their lease, so a repeated one changes nothing (I3).
 */
import type { Report } from '../contract/wire.ts';
import { checkpoint } from '../kernel/checkpoint.ts';

export interface ReporterOptions {
  /** Resolves once the API has them; tries for as long as it takes, and throws only what will not pass. */
  send(reports: Report[], signal: AbortSignal): Promise<void>;
  /** Each report once, when there is nothing more to do about it. */
  onSettled(reports: readonly Report[]): void;
  onRefused(report: Report, error: unknown): void;
}

const requestsAtOnce = 2;
const batchSize = 2_000;

export class Reporter {
  readonly #options: ReporterOptions;
  readonly #stop = new AbortController();
  #pending: Report[] = [];
  #underWay = 0;
  #unsettled = 0;
  #scheduled = false;
  #idle: (() => void)[] = [];

  constructor(options: ReporterOptions) {
    this.#options = options;
  }

  /** Reports that nobody has acknowledged yet. */
  get unsettled(): number {
    return this.#unsettled;
  }

  add(reports: readonly Report[]): void {
    if (reports.length === 0) return;
    for (const report of reports) this.#pending.push(report);
    this.#unsettled += reports.length;
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
      void this.#send(batch).finally(() => {
        this.#underWay--;
        this.#schedule();
      });
    }
  }

  async #send(batch: Report[]): Promise<void> {
    try {
      checkpoint('worker.report');
      await this.#options.send(batch, this.#stop.signal);
      checkpoint('worker.reported');
    } catch (error) {
      if (!this.#stop.signal.aborted) return await this.#refused(batch, error);
    }
    this.#settle(batch);
  }

  /** One bad report must not take the others with it. */
  async #refused(batch: Report[], error: unknown): Promise<void> {
    const [first] = batch;
    if (first && batch.length === 1) {
      this.#options.onRefused(first, error);
      this.#settle(batch);
      return;
    }
    const half = Math.ceil(batch.length / 2);
    await this.#send(batch.slice(0, half));
    await this.#send(batch.slice(half));
  }

  #settle(batch: readonly Report[]): void {
    this.#unsettled -= batch.length;
    this.#options.onSettled(batch);
    if (this.#unsettled === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }
}
