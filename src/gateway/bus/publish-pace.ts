/**
 * The pace of floods of events. While runs are at work, of any tenant, or other tenants publish, a tenant's groups are smaller, and
 * after each large one the tenant rests for a multiple of the time that it took. Otherwise a flood would keep both the server and this
 * process busy, and a run would wait for a processor at every step (I11). A tenant that only publishes, and is alone, does not rest.
 */
import type { BatchTurns } from '../claims/batch-turns.ts';

const paceLimits = {
  /** A group of this many events is too small to delay others. */
  smallGroup: 25,
  /** Events of a group while others are at work: about a millisecond of this process. */
  sharedGroup: 250,
  /** The rest, in multiples of the time that a group took, and its maximum. */
  restFactor: 3,
  maxRestMs: 100,
} as const;

export class PublishPace {
  readonly #turns: BatchTurns;

  constructor(turns: BatchTurns) {
    this.#turns = turns;
  }

  /** The maximum number of events in a group of this tenant now. */
  maxGroup(tenantId: string): number {
    return this.#turns.isShared(tenantId) ? paceLimits.sharedGroup : Number.POSITIVE_INFINITY;
  }

  /** Stores a group after the rest of the one before. */
  async run<T>(tenantId: string, events: number, work: () => Promise<T>): Promise<T> {
    await this.#rest(tenantId);
    const begunMs = performance.now();
    try {
      return await work();
    } finally {
      const nowMs = performance.now();
      if (events > paceLimits.smallGroup && this.#turns.isShared(tenantId)) {
        const restMs = Math.min(paceLimits.maxRestMs, paceLimits.restFactor * (nowMs - begunMs));
        this.#turns.tenants.of(tenantId).restsUntil = nowMs + restMs;
      }
      this.#turns.noteEvents(tenantId);
    }
  }

  async #rest(tenantId: string): Promise<void> {
    const leftMs = this.#turns.tenants.of(tenantId).restsUntil - performance.now();
    if (leftMs > 0) await new Promise((resolve) => void setTimeout(resolve, leftMs));
  }
}
