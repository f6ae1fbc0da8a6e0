/**
 * Decides from the faults that a scheduler's parts report whether the scheduler counts as running, and when to end it.
 *
 * - `starting`: it has not started, a vital part has a fault, or it is on probation. A scheduler whose last attempt ended
 *   because a part failed counts as running once its vital parts have worked for 5 s.
 * - `running`: its vital parts work. Faults of parts that are not vital are reported beside this state, and so is a fault of
 *   a vital part that has lasted for 3 s to 20 s.
 * - `hanging`: an attempt of a vital part has made no progress for 20 s. The scheduler is kept while PostgreSQL executes its
 *   statement or the statement waits for a lock. It counts as running again as soon as no vital part has a fault.
 *
 * The scheduler ends when a vital part has failed at every attempt for 20 s, whatever the error: new connections may help. It
 * also ends when a vital part has hung for 40 s and PostgreSQL works on none of its statements.
 */
import { isDeepStrictEqual } from 'node:util';
import type { PartFault, Scheduler } from '../contract/engine.ts';
import { pause } from '../kernel/service.ts';
import { boundText, type PartFact, type Reason, reasons } from '../control/reasons.ts';
import type { HangCause } from './hang-cause.ts';
import { Ending, stopped } from './singleton.ts';

export interface FaultLimits {
  /** A vital part whose attempts have all failed for this long does not work. */
  readonly failingMs: number;
  /** A hang for this long ends the scheduler, unless PostgreSQL is at work for it. */
  readonly abandonMs: number;
  /** Probation after a failure. Each vital part is tried at least once within this time. */
  readonly provenMs: number;
  readonly lookEveryMs: number;
  /** Interval between queries that find out why a part hangs. */
  readonly askEveryMs: number;
}

export const usualFaultLimits: FaultLimits = {
  failingMs: 20_000,
  abandonMs: 40_000,
  provenMs: 5_000,
  lookEveryMs: 1_000,
  askEveryMs: 5_000,
};

/** A younger fault of a vital part is not reported: the next attempt may succeed (a deadlock, a lost connection). */
const passingMs = 3_000;

export interface PartHooks {
  /** The scheduler does not count as running yet, for this reason. */
  readonly onWait: (reason: Reason) => void;
  readonly onRunning: () => void;
  /** Parts that have a fault while the scheduler runs; null: none. */
  readonly onTrouble: (trouble: Reason | null) => void;
  /** The scheduler no longer counts as running, for this reason, although it is kept. */
  readonly onHang: (reason: Reason) => void;
}

export interface Watching extends PartHooks {
  readonly scheduler: Scheduler;
  readonly started: Promise<unknown>;
  readonly limits: FaultLimits;
  /** The last attempt ended because a part failed. */
  readonly hasFailed: boolean;
  readonly findHangCause: () => Promise<HangCause>;
}

/** Resolves when the scheduler must be stopped. */
export async function watchParts(watching: Watching, over: AbortSignal): Promise<Ending> {
  const watch = new PartWatch(watching);
  const started = watching.started.then(
    () => watch.noteStart(),
    () => {},
  );
  while (!over.aborted) {
    const ending = await watch.look();
    if (ending !== undefined) return ending;
    const next = pause(watching.limits.lookEveryMs, over);
    await (watch.isStarted ? next : Promise.race([started, next]));
  }
  return stopped();
}

class PartWatch {
  readonly #watching: Watching;
  #phase: 'starting' | 'running' | 'hanging' = 'starting';
  isStarted = false;
  #wellSinceMs = performance.now();
  #reported: Reason | null = null;
  #cause: (HangCause & { readonly askedMs: number }) | undefined;

  constructor(watching: Watching) {
    this.#watching = watching;
  }

  noteStart(): void {
    this.isStarted = true;
    this.#wellSinceMs = performance.now();
  }

  async look(): Promise<Ending | undefined> {
    const { scheduler } = this.#watching;
    await this.#ask();
    const faults = scheduler.faults?.() ?? [];
    const vital = faults.filter(({ isVital }) => isVital);
    if (vital.length > 0) this.#wellSinceMs = performance.now();
    const fatal = vital.find((fault) => this.#isFatal(fault));
    if (fatal !== undefined) return new Ending(reasons.failing([this.#describe(fatal)]));
    this.#enter(this.#phaseWith(vital));
    if (this.#phase === 'running') this.#report(faults);
    else this.#explain(this.#reasonOf(vital));
    return undefined;
  }

  /** Caches the cause for `askEveryMs`, because each query opens a connection. */
  async #ask(): Promise<void> {
    const { scheduler, findHangCause, limits } = this.#watching;
    const hangs = scheduler.faults?.().some(({ isVital, underWayMs }) => isVital && underWayMs !== undefined) ?? false;
    const nowMs = performance.now();
    if (!hangs) this.#cause = undefined;
    else if (this.#cause === undefined || nowMs - this.#cause.askedMs >= limits.askEveryMs)
      this.#cause = { ...(await findHangCause()), askedMs: nowMs };
  }

  #isFatal({ failingMs, underWayMs = 0 }: PartFault): boolean {
    const { limits } = this.#watching;
    if (underWayMs < limits.failingMs) return failingMs >= limits.failingMs;
    return underWayMs >= limits.abandonMs && this.#cause?.isAtWork === false;
  }

  #phaseWith(vital: readonly PartFault[]): 'starting' | 'running' | 'hanging' {
    const { limits, hasFailed } = this.#watching;
    if (this.#phase === 'running')
      return vital.some(({ failingMs }) => failingMs >= limits.failingMs) ? 'hanging' : 'running';
    if (this.#phase === 'hanging') return vital.length > 0 ? 'hanging' : 'running';
    const isProven = performance.now() - this.#wellSinceMs >= (hasFailed ? limits.provenMs : 0);
    return this.isStarted && vital.length === 0 && isProven ? 'running' : 'starting';
  }

  #enter(phase: 'starting' | 'running' | 'hanging'): void {
    if (phase === this.#phase) return;
    this.#phase = phase;
    this.#reported = null;
    if (phase === 'running') this.#watching.onRunning();
  }

  #reasonOf(vital: readonly PartFault[]): Reason | null {
    const [longest] = vital.toSorted((a, b) => b.failingMs - a.failingMs);
    if (longest !== undefined) return { ...reasons.failing([this.#describe(longest)]), code: this.#codeOfFault() };
    const seconds = this.#watching.limits.provenMs / 1_000;
    return this.isStarted ? { code: 'starting', cause: 'proving', data: { seconds } } : null;
  }

  #codeOfFault(): 'failing' | 'starting' {
    return this.#phase === 'hanging' ? 'failing' : 'starting';
  }

  #explain(reason: Reason | null): void {
    const { onWait, onHang } = this.#watching;
    if (reason === null || isDeepStrictEqual(reason, this.#reported)) return;
    this.#reported = reason;
    if (this.#phase === 'hanging') onHang(reason);
    else onWait(reason);
  }

  #report(faults: readonly PartFault[]): void {
    const lasting = faults.filter(({ isVital, failingMs }) => failingMs >= (isVital ? passingMs : 1));
    const trouble = lasting.length === 0 ? null : reasons.failing(lasting.map((fault) => this.#describe(fault)));
    if (!isDeepStrictEqual(trouble, this.#reported)) this.#watching.onTrouble(trouble);
    this.#reported = trouble;
  }

  #describe({ doing, since, message, underWayMs }: PartFault): PartFact {
    return {
      doing: boundText(doing),
      since: since.toISOString(),
      message: message === null ? null : boundText(message),
      hang: underWayMs === undefined ? null : (this.#cause?.fact ?? null),
    };
  }
}
