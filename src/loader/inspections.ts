/**
 * Inspects tenants' databases, 16 at a time and each for at most 4 s, so that a tenant that does not answer delays no other.
 * Findings are kept for up to 10 s, for the launcher's next turn.
 */
import { performance } from 'node:perf_hooks';
import { within } from '../kernel/service.ts';
import type { EngineFault } from '../control/reasons.ts';
import type { Address } from '../postgres/address.ts';
import { type Look, look } from './inspect.ts';

/** Whether the engine of a version can be used, judged without running its code. */
type EngineFound = { readonly ok: true } | ({ readonly ok: false } & EngineFault);

export interface EnginesPort {
  usable(version: string): Promise<EngineFound>;
  /** Loads the engine's code in a process of its own. Returns why that fails, or undefined if it succeeds. */
  diagnose(version: string): Promise<string | undefined>;
}

export type Finding = Look & { readonly engine?: EngineFound };

export interface LooksOptions {
  readonly engines: EnginesPort;
  /** Called when an inspection has ended. */
  readonly onFound: () => void;
}

/** `idle`: a routine inspection without urgency, of which there may be many. */
export interface LookRequest {
  readonly tenantId: string;
  readonly address: Address;
  readonly idle: boolean;
}

const maxAtOnce = 16;
const maxIdlePerSecond = 20;
const maxInspectionMs = 4_000;
const lockWaitMs = 100;
/** How long an unused finding is kept. */
const lifeMs: Readonly<Record<Look['kind'], number>> = {
  installed: 10_000,
  not_installed: 2_000,
  migrating: 250,
  locked: 250,
  gone: 500,
  unreachable: 2_000,
};

export class Looks {
  readonly #options: LooksOptions;
  readonly #waiting = new Map<string, LookRequest>();
  /** One mark per tenant. An inspection whose mark is gone is out of date, and its finding is ignored. */
  readonly #running = new Map<string, object>();
  readonly #found = new Map<string, { readonly finding: Finding; readonly untilMs: number }>();
  #places = maxAtOnce;
  #idleAllowance = maxIdlePerSecond;
  #refilledAt = performance.now();

  constructor(options: LooksOptions) {
    this.#options = options;
  }

  /** The findings by now, per tenant. */
  findings(): ReadonlyMap<string, Finding> {
    const now = performance.now();
    for (const [tenantId, { untilMs }] of this.#found) if (untilMs <= now) this.#found.delete(tenantId);
    return new Map([...this.#found].map(([tenantId, { finding }]) => [tenantId, finding]));
  }

  /** Queues inspections in order. A tenant under inspection is not queued twice. A rejected idle request must be repeated. */
  ask(requests: readonly LookRequest[]): void {
    this.#refill();
    for (const request of requests) {
      if (this.#running.has(request.tenantId) || this.#found.has(request.tenantId)) continue;
      if (request.idle && !this.#waiting.has(request.tenantId) && !this.#admits()) continue;
      this.#waiting.set(request.tenantId, request);
    }
    this.#begin();
  }

  /** Takes one idle inspection from the allowance. Fractions are kept, because turns may follow each other closely. */
  #admits(): boolean {
    if (this.#idleAllowance < 1) return false;
    this.#idleAllowance -= 1;
    return true;
  }

  /** Drops findings and inspections of these tenants: they are used or out of date. */
  forget(tenantIds: Iterable<string>): void {
    for (const tenantId of tenantIds) {
      this.#found.delete(tenantId);
      this.#running.delete(tenantId);
      this.#waiting.delete(tenantId);
    }
  }

  #refill(): void {
    const now = performance.now();
    const more = ((now - this.#refilledAt) / 1_000) * maxIdlePerSecond;
    this.#idleAllowance = Math.min(maxIdlePerSecond, this.#idleAllowance + more);
    this.#refilledAt = now;
  }

  #begin(): void {
    const inOrder = [...this.#waiting.values()].sort((a, b) => Number(a.idle) - Number(b.idle));
    for (const request of inOrder) {
      if (this.#places === 0) return;
      this.#places -= 1;
      this.#waiting.delete(request.tenantId);
      const mark = {};
      this.#running.set(request.tenantId, mark);
      void this.#look(request, mark);
    }
  }

  async #look({ tenantId, address }: LookRequest, mark: object): Promise<void> {
    const finding = await find(address, this.#options.engines);
    this.#places += 1;
    if (this.#running.get(tenantId) === mark) {
      this.#running.delete(tenantId);
      this.#found.set(tenantId, { finding, untilMs: performance.now() + lifeMs[finding.kind] });
      this.#options.onFound();
    }
    this.#begin();
  }
}

async function find(address: Address, engines: EnginesPort): Promise<Finding> {
  const seconds = maxInspectionMs / 1_000;
  const reason = { code: 'unreachable', cause: 'no_answer', data: { seconds } } as const;
  const unanswered: Finding = { kind: 'unreachable', reason };
  const found = (await within(maxInspectionMs, look(address, lockWaitMs))) ?? unanswered;
  if (found.kind !== 'installed') return found;
  const engine = await engines.usable(found.version).catch((error: unknown): EngineFound => {
    return { ok: false, detail: error instanceof Error ? error.message : String(error) };
  });
  return { ...found, engine };
}
