/**
 * What is to happen when a trigger enters the queue (at the start, after a change, on unpausing, after oversleeping):
 * which missed instants fire now, which are noted for catch-up, which are skipped, and which instant comes next. Pure.
 *
 * An instant is missed when its due time (instant + offset) has passed, unless that was a moment ago: what fell into a
 * restart, or came due since the trigger was applied or unpaused, is only late and fires as if on time. `latest` and
 * `earliest` are the marks between which every instant has been dealt with.
 */
import { countInstants, instantAt, nextInstant, type Schedule } from '../calendar/schedule.ts';
import type { TriggerRow } from './queries.ts';

/** Who is later than this is not only late. A scheduler that was away no longer has missed nothing, whatever the policy. */
export const graceMs = 60_000;

export interface Arrival {
  /** Fires at once: the one missed instant that `last` asks for. */
  readonly fire: readonly number[];
  /** Caught up in pieces. */
  readonly catchups: readonly Range[];
  /** Due, and never to fire. */
  readonly skipped: readonly Range[];
  /** Dealt with from here on, whether it fires, is caught up or is skipped: the marks move out to these. */
  readonly marks: readonly number[];
  /** Goes into the queue; may be due already. */
  readonly next: number | undefined;
}

/** `toMs` is exclusive. */
export interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

/** `known`: the trigger was alive a moment ago; it is not one that was just made or unpaused. */
export function arrive(trigger: TriggerRow, schedule: Schedule, nowMs: number, known: boolean): Arrival {
  const passedMs = nowMs - trigger.offset_ms;
  const before = movedBack(trigger, schedule, passedMs);
  const first = nextInstant(schedule, trigger.latest?.getTime() ?? schedule.startMs - 1);
  if (first === undefined || first > passedMs) return { fire: [], ...before, next: first };
  const next = firstLate(trigger, schedule, { first, passedMs, known }) ?? nextInstant(schedule, passedMs);
  const since = missed(trigger, schedule, { fromMs: first, toMs: next ?? passedMs + 1 }, passedMs);
  return {
    fire: since.fire,
    catchups: [...before.catchups, ...since.catchups],
    skipped: [...before.skipped, ...since.skipped],
    marks: [...before.marks, ...since.marks],
    next,
  };
}

/**
 * The first instant that is only late, if there is one: of a trigger that was alive all that may have come due while
 * nobody looked, of another what came due since it is as it is.
 */
function firstLate(
  trigger: TriggerRow,
  schedule: Schedule,
  { first, passedMs, known }: { first: number; passedMs: number; known: boolean },
): number | undefined {
  const wasAlive = known && trigger.latest !== null;
  const appliedMs = trigger.since.getTime() - trigger.offset_ms;
  const late = wasAlive || first > appliedMs ? first : nextInstant(schedule, appliedMs);
  return late !== undefined && late <= passedMs && late >= passedMs - graceMs ? late : undefined;
}

type Past = Omit<Arrival, 'next' | 'fire'>;

/** `start` was moved back: what lies before the first firing is due too. */
function movedBack(trigger: TriggerRow, schedule: Schedule, passedMs: number): Past {
  const earliest = trigger.earliest?.getTime();
  if (earliest === undefined || schedule.startMs >= earliest) return { catchups: [], skipped: [], marks: [] };
  const all = { fromMs: schedule.startMs, toMs: earliest };
  const wantedFrom = isPiecewise(trigger) ? Math.max(all.fromMs, windowFrom(trigger, passedMs)) : all.toMs;
  return { ...parted(schedule, all, wantedFrom), marks: [schedule.startMs] };
}

/** `all.fromMs` is an instant: the first that was missed, if any was. */
function missed(trigger: TriggerRow, schedule: Schedule, all: Range, passedMs: number): Omit<Arrival, 'next'> {
  if (all.toMs <= all.fromMs) return { fire: [], catchups: [], skipped: [], marks: [] };
  const newest = newestIn(schedule, all);
  const marks = [all.fromMs, newest];
  const wantedFrom = Math.max(all.fromMs, windowFrom(trigger, passedMs));
  if (isPiecewise(trigger)) return { fire: [], ...parted(schedule, all, wantedFrom), marks };
  const fires = trigger.catchup === 'last' && newest >= wantedFrom;
  const skippedTo = fires ? newest : all.toMs;
  return { fire: fires ? [newest] : [], catchups: [], skipped: ranges(schedule, all.fromMs, skippedTo), marks };
}

/** What lies before `wantedFrom` is skipped, the rest caught up. */
function parted(schedule: Schedule, all: Range, wantedFrom: number): Pick<Arrival, 'catchups' | 'skipped'> {
  const at = Math.min(wantedFrom, all.toMs);
  return { catchups: ranges(schedule, at, all.toMs), skipped: ranges(schedule, all.fromMs, at) };
}

/** The range, if there is an instant in it. */
function ranges(schedule: Schedule, fromMs: number, toMs: number): Range[] {
  const first = nextInstant(schedule, fromMs - 1);
  return first !== undefined && first < toMs ? [{ fromMs, toMs }] : [];
}

function isPiecewise(trigger: Pick<TriggerRow, 'catchup'>): boolean {
  return trigger.catchup !== 'none' && trigger.catchup !== 'last';
}

/** Missed instants before this are not caught up. */
export function windowFrom(trigger: Pick<TriggerRow, 'catchup_window_ms'>, passedMs: number): number {
  return trigger.catchup_window_ms === null ? Number.NEGATIVE_INFINITY : passedMs - trigger.catchup_window_ms;
}

/** The last instant of a range that begins with one. Looks back over growing stretches: a long past costs little. */
export function newestIn(schedule: Schedule, { fromMs: first, toMs }: Range): number {
  for (let backMs = 60_000; ; backMs *= 4) {
    const from = Math.max(first, toMs - backMs);
    const instant = nextInstant(schedule, from - 1);
    if (instant !== undefined && instant < toMs) return lastFrom(schedule, instant, toMs);
    if (from === first) return first;
  }
}

const mostSteps = 16;

/** A few steps are quicker than counting, and many are not. */
function lastFrom(schedule: Schedule, instant: number, toMs: number): number {
  let newest = instant;
  for (let step = 0; step < mostSteps; step++) {
    const next = nextInstant(schedule, newest);
    if (next === undefined || next >= toMs) return newest;
    newest = next;
  }
  return instantAt(schedule, newest, toMs, countInstants(schedule, newest, toMs) - 1);
}
