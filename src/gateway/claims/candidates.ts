/**
 * Reads from the control database which tenants are candidates for claims: tenants that are off, tenants whose schedulers report
 * ready runs, and tenants whose schedulers are silent. The latter may have ready runs, so a few of them are asked with each
 * sweep. They are many when all tenants start.
 */
import type { Log } from '../../kernel/log.ts';
import { within } from '../../kernel/service.ts';
import type { Db } from '../../kernel/sql.ts';
import { readCandidates } from '../installation/queries.ts';
import type { TenantRecords } from './tenant-records.ts';

/** A slower read is not awaited; until it ends, only hints are used. */
const maxReadMs = 2_000;
/** How long a read counts as recent. */
const believedMs = 2_000;
/** All tenants with silent schedulers are asked once in 30 sweeps, and at least 8 of them in each. */
const fullSweep = { sweeps: 30, least: 8 } as const;

export class Candidates {
  readonly #control: Db;
  readonly #tenants: TenantRecords;
  readonly #log: Log;
  #off: ReadonlySet<string> = new Set();
  #looking: { readonly era: number; readonly over: Promise<void> } | undefined;
  /** Incremented when earlier reads are out of date. */
  #era = 0;
  #isSilentDue = false;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #silentAt = 0;

  constructor(control: Db, tenants: TenantRecords, log: Log) {
    this.#control = control;
    this.#tenants = tenants;
    this.#log = log;
  }

  /** Whether the tenant is switched off, so that none of its runs are handed out. */
  isOff(tenantId: string): boolean {
    return this.#off.has(tenantId);
  }

  get isLate(): boolean {
    return performance.now() - this.#lookedMs > believedMs;
  }

  /** Queues the tenants that may have ready runs. One read at a time. */
  async #look(): Promise<void> {
    const { era, over } = (this.#looking ??= this.#begin());
    await within(maxReadMs, over);
    if (era === this.#era) this.#lookedMs = performance.now();
  }

  /** Queues also some of the tenants whose schedulers are silent. */
  lookAtAll(): Promise<void> {
    this.#isSilentDue = true;
    return this.#look();
  }

  /** Something has changed: a read under way may have seen the previous state, and does not count. */
  outdate(): void {
    this.#era++;
    this.#lookedMs = Number.NEGATIVE_INFINITY;
  }

  /** Reads again, after the read under way if there is one. */
  async lookAnew({ atAll }: { readonly atAll: boolean }): Promise<void> {
    if (this.#looking !== undefined) await within(maxReadMs, this.#looking.over);
    await (atAll ? this.lookAtAll() : this.#look());
  }

  #begin(): { readonly era: number; readonly over: Promise<void> } {
    const over = this.#read()
      .catch((error: unknown) => this.#log.warn({ err: error }, 'reading candidate tenants failed'))
      .finally(() => (this.#looking = undefined));
    return { era: this.#era, over };
  }

  async #read(): Promise<void> {
    const { off, ready, silent } = await readCandidates(this.#control);
    this.#off = new Set(off);
    const nowMs = performance.now();
    for (const tenantId of ready) this.#tenants.remind(tenantId, nowMs);
    if (this.#isSilentDue) for (const tenantId of this.#someOf(silent)) this.#tenants.doubt(tenantId);
    this.#isSilentDue = false;
  }

  /** The next few tenants whose schedulers are silent. */
  #someOf(silent: readonly string[]): readonly string[] {
    const count = Math.max(fullSweep.least, Math.ceil(silent.length / fullSweep.sweeps));
    if (count >= silent.length) return silent;
    const from = this.#silentAt % silent.length;
    this.#silentAt = from + count;
    return [...silent.slice(from), ...silent.slice(0, from)].slice(0, count);
  }
}
