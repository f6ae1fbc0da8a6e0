/**
 * Supervision, a pure function beside the state machine: a tenant that shall run is started again. After a failure, that is
 * after a pause that grows (`retry-backoff.ts`). Where Millrace or an engine is missing, or the database takes no
 * connections, it is started once that has changed.
 */
import type { Look } from '../loader/inspect.ts';
import { type Reason, type ReasonCode, reasons } from '../control/reasons.ts';
import { lookDelayMs, retryDelayMs } from './retry-backoff.ts';
import type { LaunchState } from './states.ts';

/** Why a scheduler is not there any more, or never came to be. */
export interface Quit {
  readonly code: ReasonCode;
  readonly detail: string;
  /** For how long it has been so, where it is so again, and for how many tenants. */
  readonly forMs?: number;
  readonly among?: number;
  /** Its host says so, and has tried: it has failed, whatever is missing. */
  readonly ofHost?: boolean;
  /** Its host was lost with it. */
  readonly lost?: { readonly isBlamed: boolean };
}

export interface Retry {
  readonly reason: Reason;
  /** In a row. */
  readonly failures: number;
  readonly retryAt: Date;
}

/**
 * Databases without Millrace mostly stay so, and an installation is noticed at once by its lock. Where there are many of
 * them, four in a second are looked at, and each within 25 s.
 */
const longestUnlookedMs = 25_000;
const unlookedForEachMs = 250;
/** After running for so long, a failure is the first again; and whose host was lost is no longer suspected of it. */
const healedMs = 60_000;
const noteEveryMs = 60_000;
const trustedMs = 600_000;

/** Nothing has failed, something is missing: looked for again and again. */
const missing: Partial<Record<ReasonCode, (detail: string) => Reason>> = {
  not_installed: () => reasons.notInstalled,
  no_engine: reasons.noEngine,
  gone: () => reasons.gone,
};

/** So often a scheduler that fails is tried again in the slot that it has. */
const triesInSlot = 3;

/** Whether a tenant whose scheduler has failed keeps its slot until it is tried again. Later it goes to the end of the line. */
export function keepsSlot({
  state,
  code,
  failures,
}: {
  state: LaunchState;
  code: ReasonCode | null;
  failures: number;
}): boolean {
  return state === 'DISABLED' && isFailing(code) && code !== 'no_engine' && failures <= triesInSlot;
}

/** What is tried again after a growing pause: until it runs it counts as failed, also while it is being tried. */
export function isFailing(code: ReasonCode | null): boolean {
  return code === 'crashed' || code === 'failing' || code === 'unreachable' || code === 'no_engine';
}

export function afterQuit(quit: Quit, failures: number, now: Date, random: () => number = Math.random): Retry {
  const { code, detail, ofHost = false, lost } = quit;
  // a neighbour was to blame: no failure of its own, and no reason to wait
  if (lost?.isBlamed === false) return { reason: reasons.crashed(detail), failures, retryAt: now };
  const reasonOf = missing[code];
  const hasFailed = reasonOf === undefined || (ofHost && isFailing(code));
  const retryAt = later(now, hasFailed ? retryDelayMs(failures, random) : lookAgainMs(quit, random));
  const counted = hasFailed ? failures + 1 : 0;
  if (reasonOf !== undefined) return { reason: reasonOf(detail), failures: counted, retryAt };
  const failed = code === 'unreachable' || code === 'failing' ? reasons[code] : reasons.crashed;
  return { reason: failed(detail), failures: counted, retryAt };
}

/** A database without Millrace is looked at more rarely where it is one of many. */
function lookAgainMs({ code, forMs = 0, among = 1 }: Quit, random: () => number): number {
  const fairMs = code === 'not_installed' ? Math.min(forMs / 2, among * unlookedForEachMs, longestUnlookedMs) : 0;
  return Math.max(lookDelayMs(forMs, random), fairMs);
}

/** One that is switched off is looked at now and then all the same: people are told which version it is at. */
export function nextNoteAt(kind: Look['kind'], now: Date): Date {
  return later(now, kind === 'migrating' || kind === 'locked' ? 1_000 : noteEveryMs);
}

function later(now: Date, ms: number): Date {
  return new Date(now.getTime() + Math.round(ms));
}

/** Its host has let go of it without being told to: it leaves. */
export function isLeft(code: ReasonCode): boolean {
  return code === 'stopping';
}

/** Its host finds it otherwise than the launcher did: at another version by now, say. */
export function isOtherwise(code: ReasonCode): boolean {
  return code === 'starting' || code === 'waiting_on_transaction';
}

/** The first time at once. */
export function whenOtherwise(failures: number, now: Date, random: () => number = Math.random): Date | null {
  return failures === 0 ? null : later(now, retryDelayMs(failures - 1, random));
}

/** The database as its server lists it; `unlisted`: on another server, or not looked for. */
export type Presence = 'there' | 'gone' | 'template' | 'refusing' | 'unnameable' | 'unlisted';

export interface Circumstances {
  readonly desired: 'on' | 'off';
  readonly presence: Presence;
  /** Undefined: not registered. */
  readonly state: LaunchState | undefined;
  readonly ending: boolean;
  readonly code: ReasonCode | null;
  readonly retryAt: Date | null;
}

export type Care =
  | { readonly kind: 'register' }
  | { readonly kind: 'stop'; readonly reason: Reason }
  | { readonly kind: 'start' }
  /** Whether it could be started by now, before it is. */
  | { readonly kind: 'look' }
  /** Which version it is at, though it shall not run. */
  | { readonly kind: 'note' }
  | { readonly kind: 'nothing' };

const nothing: Care = { kind: 'nothing' };

/** What is to be done about a tenant without anybody saying so. */
export function care({ desired, presence, state, ending, code, retryAt }: Circumstances, now: Date): Care {
  const hindrance = hindranceOf(presence);
  const reason = desired === 'off' ? reasons.stoppedByUser : hindrance;
  const due = retryAt === null || retryAt <= now;
  if (reason !== undefined) {
    if (state !== 'DISABLED' || code !== reason.code) return { kind: 'stop', reason };
    return due && !ending && hindrance === undefined ? { kind: 'note' } : nothing;
  }
  if (state === undefined) return { kind: 'register' };
  if (state !== 'DISABLED' || ending) return nothing;
  if (code === 'gone' && presence !== 'unlisted') return { kind: 'start' };
  if (code === 'crashed' || code === 'failing') return due ? { kind: 'start' } : nothing;
  if (code === 'unreachable' || (code !== null && code in missing)) return due ? { kind: 'look' } : nothing;
  return { kind: 'start' };
}

function hindranceOf(presence: Presence): Reason | undefined {
  if (presence === 'gone') return reasons.gone;
  if (presence === 'template') return reasons.isTemplate;
  if (presence === 'unnameable') return reasons.isUnnameable;
  return presence === 'refusing' ? reasons.refusesConnections : undefined;
}

/** What a scheduler that has been running for so long is no longer blamed for. */
export function afterRunning(
  blame: { readonly failures: number; readonly suspicion: number },
  runningMs: number,
): { failures: number; suspicion: number } {
  return {
    failures: runningMs >= healedMs ? 0 : blame.failures,
    suspicion: runningMs >= trustedMs ? 0 : blame.suspicion,
  };
}
