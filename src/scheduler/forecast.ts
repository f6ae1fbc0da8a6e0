/**
 * What a trigger will do, told beforehand: its next firings, and all that applying it now would cause. It asks what the
 * trigger processor would do (`arrival.ts`), counts instead of walking, and lists only so many. Pure.
 */
import { countInstants, instantsBetween, nextInstant, type Schedule } from '../calendar/schedule.ts';
import { arrive, newestIn, type Range } from './arrival.ts';
import type { TriggerRow } from './queries.ts';

export interface Coming {
  readonly instantMs: number;
  /** When it fires: instant + offset. */
  readonly dueMs: number;
}

/** Instants of ranges: how many, the first of them in order (or the first after one), how many more, and the last. */
interface Summary {
  readonly total: number;
  readonly first: readonly number[];
  readonly more: number;
  readonly last: number | undefined;
}

export interface Outlook {
  /** Fire at once, as if on time. */
  readonly fires: readonly number[];
  readonly caughtUp: Summary;
  readonly skipped: Summary;
  readonly next: readonly Coming[];
}

const mostListed = 100;

/** The instant that fires next; of one that was just made or unpaused, as if that were now. */
export function nextOf(trigger: TriggerRow, schedule: Schedule, nowMs: number, known: boolean): number | undefined {
  const since = known ? trigger.since : new Date(nowMs);
  return arrive({ ...trigger, since }, schedule, nowMs, known).next;
}

/** So many instants, from `firstMs` on. */
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
  /** The trigger is alive now, and is only edited. */
  readonly known: boolean;
  /** Of what is caught up, list what comes after this. */
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

/** The ranges are in order, and there is an instant in each. */
function summaryOf(schedule: Schedule, ranges: readonly Range[], afterMs = Number.NEGATIVE_INFINITY): Summary {
  const first: number[] = [];
  let total = 0;
  let rest = 0;
  for (const { fromMs, toMs } of ranges) {
    total += countInstants(schedule, fromMs, toMs);
    const restMs = Math.max(fromMs, Math.min(afterMs + 1, toMs));
    rest += countInstants(schedule, restMs, toMs);
    for (const instant of instantsBetween(schedule, restMs, toMs)) {
      if (first.length === mostListed) break;
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
