/**
 * Supervision, as pure functions beside the state machine: a tenant that shall run is started again. After a failure it waits
 * for a growing pause (`retry-backoff.ts`). If Millrace or an engine is missing, or the database accepts no connections, it is
 * started once that has changed.
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
  /** A host has tried to run it: that counts as a failure, whatever is missing. */
  readonly ofHost?: boolean;
  /** Its host was lost with it. */
  readonly lost?: { readonly isBlamed: boolean };
}

export interface Retry {
  readonly reason: Reason;
  /** Consecutive failures. */
  readonly failures: number;
  readonly retryAt: Date;
}

/**
 * Databases without Millrace usually stay so, and an installation is noticed at once by its lock. If there are many, four per
 * second are inspected, and each within 25 s.
 */
const maxUninspectedMs = 25_000;
const inspectionIntervalMs = 250;
/** After running for this long, a tenant's failures are forgotten. */
const healedMs = 60_000;
/** Interval of inspections of tenants that are off; the longest pause of all. */
const noteEveryMs = 60_000;
/** After running for this long, a tenant is no longer suspected of having caused the loss of a host. */
const trustedMs = 600_000;

/** Codes of tenants that have not failed but lack something: they are inspected repeatedly. */
const missing: ReadonlySet<ReasonCode> = new Set(['not_installed', 'no_engine', 'gone']);

/** A scheduler that fails keeps its slot for this many tries. */
const maxTriesInSlot = 3;

/** Whether a failed tenant keeps its slot until its retry. After `maxTriesInSlot` it goes to the end of the line. */
export function keepsSlot(launch: {
  readonly state: LaunchState;
  readonly reason: Reason | null;
  readonly failures: number;
}): boolean {
  const { state, reason, failures } = launch;
  return state === 'DISABLED' && isFailing(reason) && reason?.code !== 'no_engine' && failures <= maxTriesInSlot;
}

/** Whether the tenant is retried after a growing pause. It counts as failing until it runs, also during a retry. */
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

/** One of many databases without Millrace is inspected less often. */
function lookAgainMs({ reason, forMs = 0, among = 1 }: Quit, random: () => number): number {
  const fairMs =
    reason.code === 'not_installed' ? Math.min(forMs / 2, among * inspectionIntervalMs, maxUninspectedMs) : 0;
  return Math.max(lookDelayMs(forMs, random), fairMs);
}

/** A tenant that is off is inspected once a minute, because users see its version. */
export function nextNoteAt(kind: Look['kind'], now: Date): Date {
  return later(now, kind === 'migrating' || kind === 'locked' ? 1_000 : noteEveryMs);
}

function later(now: Date, ms: number): Date {
  return new Date(now.getTime() + Math.round(ms));
}

/** A time further away than the longest pause comes from before the server's clock was set back, and is ignored. */
export function isDue(retryAt: Date | null, now: Date): boolean {
  const leftMs = retryAt === null ? 0 : retryAt.getTime() - now.getTime();
  return leftMs <= 0 || leftMs > noteEveryMs;
}

/** The host stopped the scheduler by itself, because the host is leaving. */
export function isHostLeaving(code: ReasonCode): boolean {
  return code === 'stopping';
}

/** The host found the tenant changed since the launcher's inspection, for example at another version. */
export function hasChanged(code: ReasonCode): boolean {
  return code === 'starting' || code === 'waiting_on_transaction';
}

/** When to retry a tenant that the host found changed; null: at once, the first time. */
export function retryAfterChange(failures: number, now: Date, random: () => number = Math.random): Date | null {
  return failures === 0 ? null : later(now, retryDelayMs(failures - 1, random));
}

/** The state of a database in its server's list; `unlisted`: on another server. */
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
  /** Inspect the tenant, to find out whether it can be started. */
  | { readonly kind: 'look' }
  /** Inspect the version of a tenant that shall not run. */
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
