/**
 * Decides what happens when a trigger enters the queue (at the start, after a change, on unpausing, after oversleeping):
 * which missed instants fire now, are recorded for catch-up or are skipped, and which instant comes next. Pure.
 *
 * An instant is missed if its due time (instant + offset) passed more than a minute ago. An instant that came due during a
 * short restart, or since the trigger was applied or unpaused, is only late, and fires as if on time. The marks `earliest` and
 * `latest` enclose the instants that have been dealt with.
 */
import { countInstants, instantAt, nextInstant, type Schedule } from '../calendar/schedule.ts';
import type { TriggerRow } from './queries.ts';

/** An instant overdue by more than this counts as missed. A shorter outage misses nothing, under any catch-up policy. */
export const graceMs = 60_000;

export interface Arrival {
  /** Fire at once: the newest missed instant, with the policy `last`. */
  readonly fire: readonly number[];
  /** To be caught up in pieces. */
  readonly catchups: readonly Range[];
  /** Were due, and will never fire. */
  readonly skipped: readonly Range[];
  /** The trigger's marks move out to these: instants between them fire, are caught up or are skipped. */
  readonly marks: readonly number[];
  /** Goes into the queue; may be due already. */
  readonly next: number | undefined;
}

/** `toMs` is exclusive. */
export interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

/** `known`: the trigger was active before; it was not just created or unpaused. */
export function arrive(trigger: TriggerRow, schedule: Schedule, nowMs: number, known: boolean): Arrival {
  const passedMs = nowMs - trigger.offset_ms;
  const before = planBeforeFirst(trigger, schedule, passedMs);
  const first = nextInstant(schedule, trigger.latest?.getTime() ?? schedule.startMs - 1);
  if (first === undefined || first > passedMs) return { fire: [], ...before, next: first };
  const next = firstLate(trigger, schedule, { first, passedMs, known }) ?? nextInstant(schedule, passedMs);
  const since = planMissed(trigger, schedule, { fromMs: first, toMs: next ?? passedMs + 1 }, passedMs);
  return {
    fire: since.fire,
    catchups: [...before.catchups, ...since.catchups],
    skipped: [...before.skipped, ...since.skipped],
    marks: [...before.marks, ...since.marks],
    next,
  };
}

/**
 * The first instant that is only late, if there is one. For a known trigger, all instants within the last minute are late; for
 * another one, only those that came due since it was applied or unpaused.
 */
function firstLate(
  trigger: TriggerRow,
  schedule: Schedule,
  { first, passedMs, known }: { first: number; passedMs: number; known: boolean },
): number | undefined {
  const wasActive = known && trigger.latest !== null;
  const appliedMs = trigger.since.getTime() - trigger.offset_ms;
  const late = wasActive || first > appliedMs ? first : nextInstant(schedule, appliedMs);
  return late !== undefined && late <= passedMs && late >= passedMs - graceMs ? late : undefined;
}

type Past = Omit<Arrival, 'next' | 'fire'>;

/** If `start` was moved back, instants before the first firing are due too. */
function planBeforeFirst(trigger: TriggerRow, schedule: Schedule, passedMs: number): Past {
  const earliest = trigger.earliest?.getTime();
  if (earliest === undefined || schedule.startMs >= earliest) return { catchups: [], skipped: [], marks: [] };
  const all = { fromMs: schedule.startMs, toMs: earliest };
  const wantedFrom = isPiecewise(trigger) ? Math.max(all.fromMs, windowFrom(trigger, passedMs)) : all.toMs;
  return { ...splitAt(schedule, all, wantedFrom), marks: [schedule.startMs] };
}

/** `all.fromMs` is the first missed instant, if there is one. */
function planMissed(trigger: TriggerRow, schedule: Schedule, all: Range, passedMs: number): Omit<Arrival, 'next'> {
  if (all.toMs <= all.fromMs) return { fire: [], catchups: [], skipped: [], marks: [] };
  const newest = newestIn(schedule, all);
  const marks = [all.fromMs, newest];
  const wantedFrom = Math.max(all.fromMs, windowFrom(trigger, passedMs));
  if (isPiecewise(trigger)) return { fire: [], ...splitAt(schedule, all, wantedFrom), marks };
  const fires = trigger.catchup === 'last' && newest >= wantedFrom;
  const skippedTo = fires ? newest : all.toMs;
  return { fire: fires ? [newest] : [], catchups: [], skipped: ranges(schedule, all.fromMs, skippedTo), marks };
}

/** Skips instants before `wantedFrom`, and catches up the rest. */
function splitAt(schedule: Schedule, all: Range, wantedFrom: number): Pick<Arrival, 'catchups' | 'skipped'> {
  const at = Math.min(wantedFrom, all.toMs);
  return { catchups: ranges(schedule, at, all.toMs), skipped: ranges(schedule, all.fromMs, at) };
}

/** The range, if it contains an instant. */
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

/** The last instant of a range that begins with one. Searches back in growing steps, so that a long range costs little. */
export function newestIn(schedule: Schedule, { fromMs: first, toMs }: Range): number {
  for (let backMs = 60_000; ; backMs *= 4) {
    const from = Math.max(first, toMs - backMs);
    const instant = nextInstant(schedule, from - 1);
    if (instant !== undefined && instant < toMs) return lastFrom(schedule, instant, toMs);
    if (from === first) return first;
  }
}

const maxSteps = 16;

/** Steps forward a few times, which is quicker than counting, then counts. */
function lastFrom(schedule: Schedule, instant: number, toMs: number): number {
  let newest = instant;
  for (let step = 0; step < maxSteps; step++) {
    const next = nextInstant(schedule, newest);
    if (next === undefined || next >= toMs) return newest;
    newest = next;
  }
  return instantAt(schedule, newest, toMs, countInstants(schedule, newest, toMs) - 1);
}
