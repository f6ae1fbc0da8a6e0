/**
 * Supervision, a pure function beside the state machine: a tenant that shall run is started again. After a failure, that is
 * after a pause that grows (`retry-backoff.ts`). Where Millrace or an engine is missing, or the database takes no
 * connections, it is started once that has changed.
 */
import type { Look } from '../loader/inspect.ts';
import { hasSameCause, type Reason, type ReasonCode, reasons } from '../control/reasons.ts';
import { lookDelayMs, retryDelayMs } from './retry-backoff.ts';
import type { LaunchState } from './states.ts';

/** Why a scheduler has ended, or did not start. */
export interface Quit {
  readonly reason: Reason;
  /** How long the tenant has had this reason, and how many tenants have it. */
  readonly forMs?: number;
  readonly among?: number;
  /** Its host has tried to run it: that counts as a failure, whatever is missing. */
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
/** The longest pause of all. */
const noteEveryMs = 60_000;
const trustedMs = 600_000;

/** Nothing has failed, something is missing: the tenant is inspected again and again. */
const missing: ReadonlySet<ReasonCode> = new Set(['not_installed', 'no_engine', 'gone']);

/** A scheduler that fails keeps its slot for this many tries. */
const maxTriesInSlot = 3;

/** Whether a tenant whose scheduler has failed keeps its slot until it is tried again. Later it goes to the end of the line. */
export function keepsSlot(launch: {
  readonly state: LaunchState;
  readonly reason: Reason | null;
  readonly failures: number;
}): boolean {
  const { state, reason, failures } = launch;
  return state === 'DISABLED' && isFailing(reason) && reason?.code !== 'no_engine' && failures <= maxTriesInSlot;
}

/** It is tried again after a growing pause. Until it runs it counts as failed, also while it is being tried. */
export function isFailing(reason: Reason | null | undefined): boolean {
  const code = reason?.code;
  return code === 'crashed' || code === 'failing' || code === 'unreachable' || code === 'no_engine';
}

export function afterQuit(quit: Quit, failures: number, now: Date, random: () => number = Math.random): Retry {
  const { reason, ofHost = false, lost } = quit;
  // another tenant of its host is to blame: this one has not failed, and need not wait
  if (lost?.isBlamed === false) return { reason, failures, retryAt: now };
  const isMissing = missing.has(reason.code);
  const hasFailed = !isMissing || (ofHost && isFailing(reason));
  const retryAt = later(now, hasFailed ? retryDelayMs(failures, random) : lookAgainMs(quit, random));
  // a host may report any code; all but these mean that its scheduler has ended
  const code = isMissing || reason.code === 'unreachable' || reason.code === 'failing' ? reason.code : 'crashed';
  return { reason: { ...reason, code }, failures: hasFailed ? failures + 1 : 0, retryAt };
}

/** A database without Millrace is looked at more rarely where it is one of many. */
function lookAgainMs({ reason, forMs = 0, among = 1 }: Quit, random: () => number): number {
  const fairMs =
    reason.code === 'not_installed' ? Math.min(forMs / 2, among * unlookedForEachMs, longestUnlookedMs) : 0;
  return Math.max(lookDelayMs(forMs, random), fairMs);
}

/** A tenant that is switched off is inspected once a minute: its version is shown to people. */
export function nextNoteAt(kind: Look['kind'], now: Date): Date {
  return later(now, kind === 'migrating' || kind === 'locked' ? 1_000 : noteEveryMs);
}

function later(now: Date, ms: number): Date {
  return new Date(now.getTime() + Math.round(ms));
}

/** A time further away than the longest pause is from before the server's clock was set back, and means nothing any more. */
export function isDue(retryAt: Date | null, now: Date): boolean {
  const leftMs = retryAt === null ? 0 : retryAt.getTime() - now.getTime();
  return leftMs <= 0 || leftMs > noteEveryMs;
}

/** Its host stopped it without being told to, because the host leaves. */
export function isLeft(code: ReasonCode): boolean {
  return code === 'stopping';
}

/** Its host found it changed since the launcher inspected it, for example at another version. */
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
  readonly reason: Reason | null;
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

/** The next step for a tenant, without a message about it. */
export function care(circumstances: Circumstances, now: Date): Care {
  const { desired, presence, state, ending, reason: before, retryAt } = circumstances;
  const hindrance = hindranceOf(presence);
  const reason = desired === 'off' ? reasons.stoppedByUser : hindrance;
  const code = before?.code;
  const due = isDue(retryAt, now);
  if (reason !== undefined) {
    if (state !== 'DISABLED' || !hasSameCause(before, reason)) return { kind: 'stop', reason };
    return due && !ending && hindrance === undefined ? { kind: 'note' } : nothing;
  }
  if (state === undefined) return { kind: 'register' };
  if (state !== 'DISABLED' || ending) return nothing;
  if (code === 'gone' && presence !== 'unlisted') return { kind: 'start' };
  if (code === 'crashed' || code === 'failing') return due ? { kind: 'start' } : nothing;
  if (code === 'unreachable' || (code !== undefined && missing.has(code))) return due ? { kind: 'look' } : nothing;
  return { kind: 'start' };
}

function hindranceOf(presence: Presence): Reason | undefined {
  if (presence === 'gone') return reasons.gone;
  if (presence === 'template') return reasons.isTemplate;
  if (presence === 'unnameable') return reasons.isUnnameable;
  return presence === 'refusing' ? reasons.refusesConnections : undefined;
}

/** The blame that is left after a scheduler has been running for this long. */
export function afterRunning(
  blame: { readonly failures: number; readonly suspicion: number },
  runningMs: number,
): { failures: number; suspicion: number } {
  return {
    failures: runningMs >= healedMs ? 0 : blame.failures,
    suspicion: runningMs >= trustedMs ? 0 : blame.suspicion,
  };
}
