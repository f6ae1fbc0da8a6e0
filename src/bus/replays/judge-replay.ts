/**
 * Judges the answer to a replayed batch. Pure.
 *
 * As for deliveries (verdict.ts), but a replay changes nothing at its subscriber: where a delivery would disable the subscriber, or
 * give up after its last attempt, the replay has failed. An age is counted in attempts, because events of the past are old.
 */
import type { OutboundAnswer } from '../../contract/bus.ts';
import { describeFailure, judge, verdictLimits } from '../delivery/verdict.ts';
import type { LoadedReplay, ReplayStep } from './queries.ts';

export const replayTimes = {
  /** Between two looks at a subscriber that is paused or disabled. Resuming it wakes its replays. */
  inactiveMs: 60_000,
} as const;

/** Attempts of the first minute, in which pauses are short. */
const earlyAttempts = 15;

export type ReplayVerdict =
  | { readonly kind: 'done' }
  | { readonly kind: 'halve' }
  /** The receiver accepts others: the event is at fault. */
  | { readonly kind: 'skip' }
  /** Send the next event alone. If that is refused as well, the step applies. */
  | { readonly kind: 'tryNext'; readonly step: ReplayStep }
  | { readonly kind: 'settle'; readonly step: ReplayStep };

export interface ReplayAttempt {
  readonly answer: OutboundAnswer;
  readonly events: number;
  readonly acceptedAtMs: number | null;
  readonly giveUpMs: number;
}

export function judgeReplay(
  { receiver, attempts, pos }: LoadedReplay,
  { answer, events, acceptedAtMs, giveUpMs }: ReplayAttempt,
  nowMs: number,
  random: () => number,
): ReplayVerdict {
  const verdict = judge(
    {
      answer,
      events,
      firstEventAtMs: nowMs,
      attempts,
      failures: attempts,
      firstFailedAtMs: attempts < earlyAttempts ? null : 0,
      health: receiver.health,
      maxAttempts: receiver.maxAttempts ?? attemptsWithin(receiver.maxAgeMs ?? giveUpMs),
      maxAgeMs: Number.POSITIVE_INFINITY,
      lastDeliveredAtMs: latest(receiver.lastDeliveredAtMs, acceptedAtMs),
    },
    nowMs,
    random,
  );
  const reason = describeFailure(answer);
  const stay = { from: pos, to: pos, attempts: attempts + 1, reason };
  switch (verdict.kind) {
    case 'done':
    case 'halve':
      return { kind: verdict.kind };
    case 'retry':
    case 'tryNext': {
      const step = { ...stay, runAtMs: verdict.runAtMs };
      return { kind: verdict.kind === 'retry' ? 'settle' : 'tryNext', step };
    }
    case 'giveUp':
      if (verdict.code === 'refused') return { kind: 'skip' };
      return { kind: 'settle', step: { ...stay, state: 'failed' } };
    case 'disable':
    default:
      return { kind: 'settle', step: { ...stay, state: 'failed' } };
  }
}

export function isAccepted(answer: OutboundAnswer): boolean {
  return 'status' in answer && answer.status >= 200 && answer.status < 300;
}

/** The longest pause is a minute. */
function attemptsWithin(ageMs: number): number {
  return earlyAttempts + Math.ceil(ageMs / verdictLimits.maxPauseMs);
}

function latest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.max(a, b);
}
