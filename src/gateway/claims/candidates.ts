/**
 * What the control database says of tenants that claims may go to: who is switched off, whose scheduler says that runs are
 * ready, and whose says nothing. The latter are asked to be sure, a few with each sweep: they are many when all start.
 */
import type { Log } from '../../kernel/log.ts';
import { within } from '../../kernel/service.ts';
import type { Db } from '../../kernel/sql.ts';
import { readCandidates } from '../installation/queries.ts';
import type { HotTenants } from './hot-tenants.ts';

/** A look that has no answer by then is not waited for: bells must do. */
const longestLookMs = 2_000;
/** What was read is believed for so long without another look. */
const believedMs = 2_000;
/** All tenants whose schedulers are silent are asked once in so many sweeps, but some in each. */
const fullSweep = { sweeps: 30, least: 8 } as const;

export class Candidates {
  readonly #control: Db;
  readonly #hot: HotTenants;
  readonly #log: Log;
  #off: ReadonlySet<string> = new Set();
  #looking: { readonly era: number; readonly over: Promise<void> } | undefined;
  /** Grows when what was read before is out of date. */
  #era = 0;
  #isSilentDue = false;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #silentAt = 0;

  constructor(control: Db, hot: HotTenants, log: Log) {
    this.#control = control;
    this.#hot = hot;
    this.#log = log;
  }

  /** Whether it is to give nothing. */
  isOff(tenantId: string): boolean {
    return this.#off.has(tenantId);
  }

  get isLate(): boolean {
    return performance.now() - this.#lookedMs > believedMs;
  }

  /** Who may have runs is hot afterwards. One look at a time. */
  async #look(): Promise<void> {
    const { era, over } = (this.#looking ??= this.#begin());
    await within(longestLookMs, over);
    if (era === this.#era) this.#lookedMs = performance.now();
  }

  /** Also at some of those whose schedulers say nothing. */
  lookAtAll(): Promise<void> {
    this.#isSilentDue = true;
    return this.#look();
  }

  /** Something has changed: a look that is under way may have seen things as they were, and does not count. */
  outdate(): void {
    this.#era++;
    this.#lookedMs = Number.NEGATIVE_INFINITY;
  }

  /** After the one that is under way, if there is one. */
  async lookAnew({ atAll }: { readonly atAll: boolean }): Promise<void> {
    if (this.#looking !== undefined) await within(longestLookMs, this.#looking.over);
    await (atAll ? this.lookAtAll() : this.#look());
  }

  #begin(): { readonly era: number; readonly over: Promise<void> } {
    const over = this.#read()
      .catch((error: unknown) => this.#log.warn({ err: error }, 'the tenants cannot be read'))
      .finally(() => (this.#looking = undefined));
    return { era: this.#era, over };
  }

  async #read(): Promise<void> {
    const { off, ready, silent } = await readCandidates(this.#control);
    this.#off = new Set(off);
    const nowMs = performance.now();
    for (const tenantId of ready) this.#hot.remind(tenantId, nowMs);
    if (this.#isSilentDue) for (const tenantId of this.#someOf(silent)) this.#hot.heat(tenantId);
    this.#isSilentDue = false;
  }

  /** The next few of those whose schedulers say nothing. */
  #someOf(silent: readonly string[]): readonly string[] {
    const count = Math.max(fullSweep.least, Math.ceil(silent.length / fullSweep.sweeps));
    if (count >= silent.length) return silent;
    const from = this.#silentAt % silent.length;
    this.#silentAt = from + count;
    return [...silent.slice(from), ...silent.slice(0, from)].slice(0, count);
  }
}
