/**
 * Predicts what a trigger will do: its next firings, and everything that applying it now would cause. Uses the decisions of
 * the trigger processor (`arrival.ts`), counts instants instead of walking them, and lists at most 100. Pure.
 */
import { countInstants, instantsBetween, nextInstant, type Schedule } from '../calendar/schedule.ts';
import { arrive, newestIn, type Range } from './arrival.ts';
import type { TriggerRow } from './queries.ts';

export interface Coming {
  readonly instantMs: number;
  /** When it fires: instant + offset. */
  readonly dueMs: number;
}

/**
 * Instants of ranges: `total` of them, the `first` ones in order (those after `afterMs`, if it is given), how many `more`
 * follow these, and the `last`.
 */
interface Summary {
  readonly total: number;
  readonly first: readonly number[];
  readonly more: number;
  readonly last: number | undefined;
}

export interface Outlook {
  /** Instants that fire at once, as if on time. */
  readonly fires: readonly number[];
  readonly caughtUp: Summary;
  readonly skipped: Summary;
  readonly next: readonly Coming[];
}

const maxListed = 100;

/** The instant that fires next. A trigger that is not known counts as created or unpaused now. */
export function nextOf(trigger: TriggerRow, schedule: Schedule, nowMs: number, known: boolean): number | undefined {
  const since = known ? trigger.since : new Date(nowMs);
  return arrive({ ...trigger, since }, schedule, nowMs, known).next;
}

/** `count` instants, from `firstMs` on. */
export function comingFrom(
  trigger: Pick<TriggerRow, 'offset_ms'>,
  schedule: Schedule,
  firstMs: number | undefined,
  count: number,
): Coming[] {
  const coming: Coming[] = [];
  for (let at = firstMs; at !== undefined && coming.length < count; at = nextInstant(schedule, at)) {
    coming.push({ instantMs: at, dueMs: at + trigger.offset_ms });
  }
  return coming;
}

export interface Circumstances {
  readonly nowMs: number;
  /** The trigger is active now, and is only edited. */
  readonly known: boolean;
  /** List caught-up instants after this one. */
  readonly afterMs?: number | undefined;
}

export function outlookOf(trigger: TriggerRow, schedule: Schedule, circumstances: Circumstances): Outlook {
  const { nowMs, known, afterMs } = circumstances;
  const passedMs = nowMs - trigger.offset_ms;
  const { fire, catchups, skipped, next } = arrive({ ...trigger, since: new Date(nowMs) }, schedule, nowMs, known);
  const late = next === undefined ? [] : [...instantsBetween(schedule, next, passedMs + 1)];
  const ahead = next === undefined || next > passedMs ? next : nextInstant(schedule, passedMs);
  return {
    fires: [...fire, ...late],
    caughtUp: summaryOf(schedule, catchups, afterMs),
    skipped: summaryOf(schedule, skipped),
    next: comingFrom(trigger, schedule, ahead, 5),
  };
}

/** The ranges must be in order, and contain at least one instant each. */
function summaryOf(schedule: Schedule, ranges: readonly Range[], afterMs = Number.NEGATIVE_INFINITY): Summary {
  const first: number[] = [];
  let total = 0;
  let rest = 0;
  for (const { fromMs, toMs } of ranges) {
    total += countInstants(schedule, fromMs, toMs);
    const restMs = Math.max(fromMs, Math.min(afterMs + 1, toMs));
    rest += countInstants(schedule, restMs, toMs);
    for (const instant of instantsBetween(schedule, restMs, toMs)) {
      if (first.length === maxListed) break;
      first.push(instant);
    }
  }
  const end = ranges.at(-1);
  const last = end && newestIn(schedule, { ...end, fromMs: startOf(schedule, end) });
  return { total, first, more: rest - first.length, last };
}

function startOf(schedule: Schedule, { fromMs }: Range): number {
  return nextInstant(schedule, fromMs - 1) ?? fromMs;
}
