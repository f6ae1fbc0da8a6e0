/**
 * What is to happen when a trigger enters the queue (at the start, after a change, on unpausing, after oversleeping):
 * which missed instants fire now, which are noted for catch-up, which are skipped, and which instant comes next. Pure.
 *
 * An instant is missed when its due time (instant + offset) has passed. `latest` and `earliest` are the marks between
 * which every instant has been dealt with.
 */
import { instantsBetween, nextInstant, type Schedule } from '../jobs/schedule.ts';
import type { TriggerRow } from './queries.ts';

/** A scheduler that was away no longer than this has missed nothing, whatever the policy: a restart drops no instant. */
export const graceMs = 60_000;

export interface Arrival {
  /** Fires at once, as if on time. */
  readonly fire: readonly number[];
  /** From (inclusive) to (exclusive): caught up in pieces. */
  readonly catchups: readonly Range[];
  /** Dealt with from here on, whether it fires, is caught up or is skipped: the marks move out to these. */
  readonly marks: readonly number[];
  readonly next: number | undefined;
}

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

/** `known`: the trigger was alive a moment ago; it is not one that was just made or unpaused. */
export function arrive(trigger: TriggerRow, schedule: Schedule, nowMs: number, known: boolean): Arrival {
  const passedMs = nowMs - trigger.offset_ms;
  const first = nextInstant(schedule, trigger.latest?.getTime() ?? schedule.startMs - 1);
  const before = movedBack(trigger, schedule, passedMs);
  if (first === undefined || first > passedMs) return { fire: [], ...before, next: first };
  const next = nextInstant(schedule, passedMs);
  const since = missed(trigger, schedule, { fromMs: first, toMs: next ?? passedMs + 1 }, { passedMs, known });
  return {
    fire: since.fire,
    catchups: [...before.catchups, ...since.catchups],
    marks: [...before.marks, ...since.marks],
    next,
  };
}

/** `start` was moved back: what lies before the first firing is due too. */
function movedBack(trigger: TriggerRow, schedule: Schedule, passedMs: number): Pick<Arrival, 'catchups' | 'marks'> {
  const earliest = trigger.earliest?.getTime();
  if (earliest === undefined || schedule.startMs >= earliest || !piecewise(trigger)) return { catchups: [], marks: [] };
  const range = { fromMs: Math.max(schedule.startMs, windowFrom(trigger, passedMs)), toMs: earliest };
  return { catchups: holdsInstant(schedule, range) ? [range] : [], marks: [schedule.startMs] };
}

function piecewise(trigger: TriggerRow): boolean {
  return trigger.catchup !== 'none' && trigger.catchup !== 'last';
}

function windowFrom(trigger: TriggerRow, passedMs: number): number {
  return trigger.catchup_window_ms === null ? Number.NEGATIVE_INFINITY : passedMs - trigger.catchup_window_ms;
}

function holdsInstant(schedule: Schedule, range: Range): boolean {
  const first = nextInstant(schedule, range.fromMs - 1);
  return first !== undefined && first < range.toMs;
}

/** `all.fromMs` is an instant: the first that was missed. */
function missed(
  trigger: TriggerRow,
  schedule: Schedule,
  all: Range,
  { passedMs, known }: { passedMs: number; known: boolean },
): Omit<Arrival, 'next'> {
  const wanted = { fromMs: Math.max(all.fromMs, windowFrom(trigger, passedMs)), toMs: all.toMs };
  const newest = newestBefore(schedule, all);
  const marks = [all.fromMs, newest];
  if (trigger.catchup === 'last') return { fire: newest >= wanted.fromMs ? [newest] : [], catchups: [], marks };
  if (trigger.catchup === 'none') {
    const justAway = known && trigger.latest !== null && all.fromMs >= passedMs - graceMs;
    return { fire: justAway ? [...instantsBetween(schedule, all.fromMs, all.toMs)] : [], catchups: [], marks };
  }
  return { fire: [], catchups: holdsInstant(schedule, wanted) ? [wanted] : [], marks };
}

/** The last instant of the range, whose start is one. Looks back over growing stretches: a long past costs little. */
function newestBefore(schedule: Schedule, { fromMs: first, toMs }: Range): number {
  for (let backMs = 60_000; ; backMs *= 4) {
    const from = Math.max(first, toMs - backMs);
    const instant = nextInstant(schedule, from - 1);
    if (instant !== undefined && instant < toMs) return lastFrom(schedule, instant, toMs);
    if (from === first) return first;
  }
}

function lastFrom(schedule: Schedule, instant: number, toMs: number): number {
  let newest = instant;
  for (let at: number | undefined = instant; at !== undefined && at < toMs; at = nextInstant(schedule, at)) newest = at;
  return newest;
}
