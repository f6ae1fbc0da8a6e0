/**
 * Tenants of which the database refuses what the launcher would write (a row that somebody has locked, a constraint or a
 * trigger that is not ours): left out for a while, and told of once.
 */
import { performance } from 'node:perf_hooks';
import type { Log } from '../kernel/log.ts';

/** How long one is left out before it is tried again. */
const againMs = 5_000;

export class Refusals {
  readonly #log: Log;
  readonly #byTenant = new Map<string, { readonly untilMs: number; readonly why: string }>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** `again`: those whose time has come. */
  current(): { readonly without: ReadonlySet<string>; readonly again: readonly string[] } {
    const nowMs = performance.now();
    const due = [...this.#byTenant].filter(([, { untilMs }]) => untilMs <= nowMs);
    return { without: new Set(this.#byTenant.keys()), again: due.map(([tenantId]) => tenantId) };
  }

  /** What came of a turn in which these were tried again. */
  note(refused: ReadonlyMap<string, unknown>, again: readonly string[], nameOf: (id: string) => string): void {
    for (const tenantId of again) if (!refused.has(tenantId)) this.#byTenant.delete(tenantId);
    for (const [tenantId, error] of refused) {
      const why = error instanceof Error ? error.message : String(error);
      if (this.#byTenant.get(tenantId)?.why !== why)
        this.#log.warn(
          { err: error, tenant: nameOf(tenantId) },
          'what was decided on a tenant cannot be written; it is left out, and tried again now and then',
        );
      this.#byTenant.set(tenantId, { untilMs: performance.now() + againMs, why });
    }
  }
}
