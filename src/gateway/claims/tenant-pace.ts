/**
 * How tenants answer. One that is slow or fails costs the others nothing: no places are kept for it, and after a failure
 * it is left alone for a while, longer each time. An answer in time makes it one like any other. For one that has lately
 * answered in time more patience is had than for one of which nothing is known.
 */
import { type Backoff, delayMs } from '../../kernel/backoff.ts';

const backoff: Backoff = { firstMs: 100, capMs: 10_000, jitter: 0.5 };
const tellEveryMs = 60_000;
const patience = { knownMs: 100, unknownMs: 25 } as const;
const rememberMs = 60_000;

interface Pace {
  failures: number;
  notBeforeMs: number;
  toldMs: number;
  /** When it was last found to be slow, or to fail. */
  foundMs: number;
}

export class TenantPace {
  readonly #slow = new Map<string, Pace>();
  /** When a tenant last answered in time. */
  readonly #prompt = new Map<string, number>();

  /** There is no such tenant any more. */
  forget(tenantId: string): void {
    this.#slow.delete(tenantId);
    this.#prompt.delete(tenantId);
  }

  /** The server that tenants share is back: their pauses are over. */
  forgive(): void {
    for (const pace of this.#slow.values()) {
      pace.failures = 0;
      pace.notBeforeMs = 0;
    }
  }

  /** What was long ago says nothing any more: a tenant may be gone, and nobody asked it since. */
  forgetOld(nowMs: number): void {
    for (const [tenantId, atMs] of this.#prompt) if (nowMs - atMs >= rememberMs) this.#prompt.delete(tenantId);
    for (const [tenantId, { foundMs }] of this.#slow) if (nowMs - foundMs >= rememberMs) this.#slow.delete(tenantId);
  }

  /** How many tenants something is known of. */
  get size(): number {
    return new Set([...this.#prompt.keys(), ...this.#slow.keys()]).size;
  }

  isSlow(tenantId: string): boolean {
    return this.#slow.has(tenantId);
  }

  mayAsk(tenantId: string, nowMs: number): boolean {
    return nowMs >= (this.#slow.get(tenantId)?.notBeforeMs ?? 0);
  }

  patienceMs(tenantId: string, nowMs: number): number {
    return this.isKnown(tenantId, nowMs) ? patience.knownMs : patience.unknownMs;
  }

  /** It has lately answered in time. */
  isKnown(tenantId: string, nowMs: number): boolean {
    return nowMs - (this.#prompt.get(tenantId) ?? Number.NEGATIVE_INFINITY) < rememberMs;
  }

  inTime(tenantId: string, nowMs: number): void {
    this.#slow.delete(tenantId);
    this.#prompt.set(tenantId, nowMs);
  }

  /** It has not answered in time. */
  overdue(tenantId: string, nowMs: number): void {
    this.#found(tenantId, nowMs);
  }

  /** It answered at last. */
  late(tenantId: string, nowMs: number): void {
    const pace = this.#found(tenantId, nowMs);
    pace.failures = 0;
    pace.notBeforeMs = 0;
  }

  /** Answers whether that is worth telling: the first time, and then once a minute. */
  failed(tenantId: string, nowMs: number): boolean {
    const pace = this.#found(tenantId, nowMs);
    // one that had begun before the pause is no further failure
    if (nowMs >= pace.notBeforeMs) pace.notBeforeMs = nowMs + delayMs(backoff, pace.failures++);
    if (nowMs - pace.toldMs < tellEveryMs) return false;
    pace.toldMs = nowMs;
    return true;
  }

  #found(tenantId: string, nowMs: number): Pace {
    const pace = this.#slow.get(tenantId) ?? {
      failures: 0,
      notBeforeMs: 0,
      toldMs: Number.NEGATIVE_INFINITY,
      foundMs: nowMs,
    };
    pace.foundMs = nowMs;
    this.#slow.set(tenantId, pace);
    return pace;
  }
}
