/**
 * What the failing parts of a scheduler mean for it.
 *
 * 1. A vital part that has failed at every attempt for 20 s ends the scheduler, whatever the error: it does not do its work.
 * 2. A scheduler that ended so is not called running again before its vital parts have worked for 5 s without a fault.
 * 3. A part that only tidies up ends nothing. It is reported beside "runs", and so is a vital part that has just begun to fail.
 */
import type { PartFault, Scheduler } from '../contract/engine.ts';
import { pause } from '../kernel/service.ts';
import { Ending } from './singleton.ts';

export interface FaultLimits {
  /** A vital part that has failed every time for so long will go on to fail until somebody sees to it. */
  readonly failingMs: number;
  /** Each vital part comes round within this time. */
  readonly provenMs: number;
  readonly lookEveryMs: number;
}

export const usualFaultLimits: FaultLimits = { failingMs: 20_000, provenMs: 5_000, lookEveryMs: 1_000 };

/** A fault this young may be gone with the next attempt: a deadlock, a lost connection. */
const passingMs = 3_000;

function faultsOf(scheduler: Scheduler): readonly PartFault[] {
  return scheduler.faults?.() ?? [];
}

function formatFault({ doing, since, message }: PartFault): string {
  return `${doing} fails since ${since.toISOString()}: ${message}`;
}

function findFailing(faults: readonly PartFault[], { failingMs }: FaultLimits): Ending | undefined {
  const fault = faults.find((each) => each.isVital && each.failingMs >= failingMs);
  return fault && new Ending('failing', formatFault(fault));
}

export interface Proving {
  readonly scheduler: Scheduler;
  readonly limits: FaultLimits;
  /** Its last attempt ended because a part failed. */
  readonly hasFailed: boolean;
  readonly onWait: (reason: string) => void;
}

/** Undefined once it may be called running. */
export async function awaitProof(
  { scheduler, limits, hasFailed, onWait }: Proving,
  over: AbortSignal,
): Promise<Ending | undefined> {
  let wellSinceMs = performance.now();
  let said = '';
  while (!over.aborted) {
    const faults = faultsOf(scheduler).filter(({ isVital }) => isVital);
    const failing = findFailing(faults, limits);
    if (failing !== undefined) return failing;
    const [first] = faults;
    if (first !== undefined) wellSinceMs = performance.now();
    else if (performance.now() - wellSinceMs >= (hasFailed ? limits.provenMs : 0)) return undefined;
    const words = first === undefined ? 'it runs, and has to prove itself' : formatFault(first);
    if (words !== said) onWait(words);
    said = words;
    await pause(limits.lookEveryMs, over);
  }
  return undefined;
}

/** Resolves when a vital part fails for good. Reports lesser faults meanwhile, and null when they are over. */
export async function watchParts(
  scheduler: Scheduler,
  limits: FaultLimits,
  onTrouble: (trouble: string | null) => void,
  over: AbortSignal,
): Promise<Ending> {
  let said: string | null = null;
  while (!over.aborted) {
    const faults = faultsOf(scheduler);
    const failing = findFailing(faults, limits);
    if (failing !== undefined) return failing;
    const lasting = faults.filter(({ isVital, failingMs }) => failingMs >= (isVital ? passingMs : 1));
    const trouble = lasting.length === 0 ? null : lasting.map(formatFault).join('; ');
    if (trouble !== said) onTrouble(trouble);
    said = trouble;
    await pause(limits.lookEveryMs, over);
  }
  return new Ending('stopping', 'it was stopped');
}
