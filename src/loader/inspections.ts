/**
 * Inspects tenants' databases, several at a time and each for at most 4 s: a tenant that does not answer delays no other.
 * Findings are kept for a moment, for the launcher's next turn.
 */
import { performance } from 'node:perf_hooks';
import { within } from '../kernel/service.ts';
import type { EngineFault } from '../control/reasons.ts';
import type { Address } from '../postgres/address.ts';
import { type Look, look } from './inspect.ts';

/** Whether an engine of that version can be used here, as far as can be said without running it. */
type EngineFound = { readonly ok: true } | ({ readonly ok: false } & EngineFault);

export interface EnginesPort {
  usable(version: string): Promise<EngineFound>;
  /** Why its code cannot be loaded, by loading it in a process of its own; undefined: it can. */
  diagnose(version: string): Promise<string | undefined>;
}

export type Finding = Look & { readonly engine?: EngineFound };

export interface LooksOptions {
  readonly engines: EnginesPort;
  /** Something was found. */
  readonly onFound: () => void;
}

/** `idle`: nobody is waiting for it; there may be many of these. */
export interface LookRequest {
  readonly tenantId: string;
  readonly address: Address;
  readonly idle: boolean;
}

const mostAtOnce = 16;
const mostIdlePerSecond = 20;
const longestLookMs = 4_000;
const lockWaitMs = 100;
/** How long a finding holds, unless it has been used. */
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
  /** By tenant; replaced when what it is about to find would be out of date. */
  readonly #running = new Map<string, object>();
  readonly #found = new Map<string, { readonly finding: Finding; readonly untilMs: number }>();
  #places = mostAtOnce;
  #idleAllowance = mostIdlePerSecond;
  #refilledAt = performance.now();

  constructor(options: LooksOptions) {
    this.#options = options;
  }

  /** What is known by now. */
  findings(): ReadonlyMap<string, Finding> {
    const now = performance.now();
    for (const [tenantId, { untilMs }] of this.#found) if (untilMs <= now) this.#found.delete(tenantId);
    return new Map([...this.#found].map(([tenantId, { finding }]) => [tenantId, finding]));
  }

  /** The first come first. Whoever is looked at already is not asked for twice; those that find no place ask again. */
  ask(requests: readonly LookRequest[]): void {
    this.#refill();
    for (const request of requests) {
      if (this.#running.has(request.tenantId) || this.#found.has(request.tenantId)) continue;
      if (request.idle && !this.#waiting.has(request.tenantId) && !this.#admits()) continue;
      this.#waiting.set(request.tenantId, request);
    }
    this.#begin();
  }

  /** One more that nobody waits for. Turns may follow each other closely: what is less than one is kept for the next. */
  #admits(): boolean {
    if (this.#idleAllowance < 1) return false;
    this.#idleAllowance -= 1;
    return true;
  }

  /** What was found, or is being looked at, of these is used up or out of date. */
  forget(tenantIds: Iterable<string>): void {
    for (const tenantId of tenantIds) {
      this.#found.delete(tenantId);
      this.#running.delete(tenantId);
      this.#waiting.delete(tenantId);
    }
  }

  #refill(): void {
    const now = performance.now();
    const more = ((now - this.#refilledAt) / 1_000) * mostIdlePerSecond;
    this.#idleAllowance = Math.min(mostIdlePerSecond, this.#idleAllowance + more);
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
  const seconds = longestLookMs / 1_000;
  const reason = { code: 'unreachable', cause: 'no_answer', data: { seconds } } as const;
  const unanswered: Finding = { kind: 'unreachable', reason };
  const found = (await within(longestLookMs, look(address, lockWaitMs))) ?? unanswered;
  if (found.kind !== 'installed') return found;
  const engine = await engines.usable(found.version).catch((error: unknown): EngineFound => {
    return { ok: false, detail: error instanceof Error ? error.message : String(error) };
  });
  return { ...found, engine };
}
