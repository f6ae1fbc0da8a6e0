/**
 * Judges the answer to a delivery. Pure: time and randomness are arguments.
 *
 * | answer | verdict |
 * |---|---|
 * | 2xx | done |
 * | 410 | disable the subscriber |
 * | 413, 400, 422 to several events | halve the batch |
 * | 413, 400, 422 to one event | give it up if the receiver has just accepted another; else try the next event |
 * | 429, 503 with Retry-After | retry then, at most an hour later |
 * | anything else | retry after a growing pause |
 * | a failure beyond the limits of attempts or age | give up |
 */
import type { OutboundAnswer } from '../../contract/bus.ts';
import { shortestPauseMs } from './health.ts';

export type Verdict =
  | { readonly kind: 'done' }
  | { readonly kind: 'retry'; readonly runAtMs: number; readonly reason: string }
  | { readonly kind: 'halve' }
  /** One event was refused, and it is not known whether the receiver accepts any: send the next one alone. */
  | { readonly kind: 'tryNext'; readonly runAtMs: number; readonly reason: string }
  | { readonly kind: 'giveUp'; readonly code: string; readonly runAtMs: number | null }
  | { readonly kind: 'disable'; readonly reason: string };

export interface Attempt {
  readonly answer: OutboundAnswer;
  readonly events: number;
  /** When the first event of the batch was accepted by the bus. */
  readonly firstEventAtMs: number;
  /** Earlier attempts of this batch. */
  readonly attempts: number;
  /** Earlier failures since the last success. */
  readonly failures: number;
  /** Since when all attempts have failed; null: this is the first. */
  readonly firstFailedAtMs: number | null;
  readonly health: number;
  readonly maxAttempts: number | null;
  readonly maxAgeMs: number;
  /** When the receiver last accepted a batch; null: not known. */
  readonly lastDeliveredAtMs: number | null;
}

export const verdictLimits = {
  firstPauseMs: 500,
  /** In the first minute of failing, a receiver that restarts is found within 5 s. */
  earlyMs: 60_000,
  earlyPauseMs: 5_000,
  maxPauseMs: 60_000,
  maxRetryAfterMs: 3_600_000,
  /** A receiver that accepted an event so recently is not at fault if it refuses another. */
  recentMs: 60_000,
} as const;

/** Statuses that refuse this content, not every content. */
const refusals: ReadonlySet<number> = new Set([400, 413, 422]);

export function judge(attempt: Attempt, nowMs: number, random: () => number): Verdict {
  const { answer } = attempt;
  const status = 'status' in answer ? answer.status : undefined;
  if (status !== undefined && status >= 200 && status < 300) return { kind: 'done' };
  if (status === 410) return { kind: 'disable', reason: 'the receiver answered 410 Gone' };
  const isRefused = status !== undefined && refusals.has(status);
  if (isRefused && attempt.events > 1) return { kind: 'halve' };
  const reason = describeFailure(answer);
  if (isRefused && isRecent(attempt.lastDeliveredAtMs, nowMs))
    return { kind: 'giveUp', code: 'refused', runAtMs: null };
  const pauseMs = retryPauseMs(attempt, nowMs, random);
  const limit = exceededLimit(attempt, nowMs);
  if (limit !== undefined) return { kind: 'giveUp', code: limit, runAtMs: nowMs + pauseMs };
  const runAtMs = nowMs + (retryAfterMs(answer) ?? pauseMs);
  return { kind: isRefused ? 'tryNext' : 'retry', runAtMs, reason };
}

function isRecent(atMs: number | null, nowMs: number): boolean {
  return atMs !== null && nowMs - atMs <= verdictLimits.recentMs;
}

/**
 * An age counts twice: the receiver must have failed for that long, and the events must be so old. So a receiver that was paused
 * for a week loses nothing by its first failure, and one that is gone for good keeps no event for longer.
 */
function exceededLimit(attempt: Attempt, nowMs: number): 'max_attempts' | 'max_age' | undefined {
  const { attempts, maxAttempts, maxAgeMs, firstFailedAtMs, firstEventAtMs } = attempt;
  if (maxAttempts !== null && attempts + 1 >= maxAttempts) return 'max_attempts';
  const sinceMs = Math.max(firstFailedAtMs ?? nowMs, firstEventAtMs);
  return nowMs - sinceMs >= maxAgeMs ? 'max_age' : undefined;
}

function retryAfterMs(answer: OutboundAnswer): number | undefined {
  if (!('status' in answer) || answer.retryAfterMs === null) return undefined;
  if (answer.status !== 429 && answer.status !== 503) return undefined;
  return Math.min(verdictLimits.maxRetryAfterMs, Math.max(0, answer.retryAfterMs));
}

/** Twice as long each time, of which up to half is taken away by chance. Health sets a minimum. */
export function retryPauseMs(
  { failures, firstFailedAtMs, health }: Pick<Attempt, 'failures' | 'firstFailedAtMs' | 'health'>,
  nowMs: number,
  random: () => number,
): number {
  const { firstPauseMs, earlyMs, earlyPauseMs, maxPauseMs } = verdictLimits;
  const isEarly = firstFailedAtMs === null || nowMs - firstFailedAtMs < earlyMs;
  const full = Math.min(isEarly ? earlyPauseMs : maxPauseMs, firstPauseMs * 2 ** Math.min(failures, 20));
  return Math.max(shortestPauseMs(health), full * (1 - 0.5 * random()));
}

export function describeFailure(answer: OutboundAnswer): string {
  return 'status' in answer ? `the receiver answered ${answer.status}` : `${answer.code}: ${answer.detail}`;
}
