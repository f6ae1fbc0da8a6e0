/**
 * A host's reports to the launcher: collected, written in one statement, and retried after a failure. A report that the
 * database rejects (its row is locked) is left out for five seconds, so that the others do not wait for it.
 */
import { performance } from 'node:perf_hooks';
import { isStatementRejection } from '../errors.ts';
import type { Bell } from '../kernel/bell.ts';
import { isolateRejected } from '../kernel/isolate-rejected.ts';
import { growingTo, loop, type Service } from '../kernel/service.ts';
import type { HostReport } from './host-queries.ts';

export interface HostReportsOptions {
  readonly bell: Bell;
  readonly write: (reports: readonly HostReport[]) => Promise<void>;
  readonly onError: (error: unknown) => void;
  /** How long a rejected report is left out; default: five seconds. */
  readonly againMs?: number;
}

const maxWaitMs = 1_000;
const defaultAgainMs = 5_000;

export class HostReports {
  /** By tenant: a newer report replaces an older one. */
  readonly #unwritten = new Map<string, HostReport>();
  /** Tenants whose reports are rejected, and until when they are left out. */
  readonly #rejected = new Map<string, number>();
  readonly #options: HostReportsOptions;
  readonly service: Service;

  constructor(options: HostReportsOptions) {
    this.#options = options;
    // without `quiet`: schedulers still report while they stop
    const { name, start, stop } = loop(
      'reports',
      async (signal) => {
        await options.bell.wait(maxWaitMs, signal);
        await this.flush();
      },
      options.onError,
      growingTo(maxWaitMs),
    );
    this.service = { name, start, stop };
  }

  add(report: HostReport): void {
    this.#unwritten.set(report.tenantId, report);
    this.#options.bell.ring();
  }

  /** Tenants whose reports are rejected. The launcher must not conclude anything from their missing reports. */
  get unsaid(): string[] {
    return [...this.#rejected.keys()];
  }

  /** Drops all reports: the host was written off, and its reports no longer count. */
  forget(): void {
    this.#unwritten.clear();
    this.#rejected.clear();
  }

  async flush(): Promise<void> {
    const nowMs = performance.now();
    const reports = [...this.#unwritten.values()];
    await this.#write(reports.filter(({ tenantId }) => !this.#rejected.has(tenantId)));
    await this.#write(reports.filter(({ tenantId }) => (this.#rejected.get(tenantId) ?? nowMs + 1) <= nowMs));
  }

  async #write(reports: readonly HostReport[]): Promise<void> {
    if (reports.length === 0) return;
    const { write, onError, againMs = defaultAgainMs } = this.#options;
    const rejected = await isolateRejected(reports, write, { isRejection: isStatementRejection });
    for (const report of reports) {
      const { tenantId } = report;
      if (rejected.has(report)) this.#rejected.set(tenantId, performance.now() + againMs);
      else {
        this.#rejected.delete(tenantId);
        if (this.#unwritten.get(tenantId) === report) this.#unwritten.delete(tenantId);
      }
    }
    for (const error of rejected.values()) onError(error);
  }
}
