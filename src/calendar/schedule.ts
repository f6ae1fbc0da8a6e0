/**
 * The calculator of a trigger's instants.
 *
 * `start` is always an instant, also where the cron expression does not name it; `end` never is, nor anything after it.
 * After `start` come the multiples of the period, or the moments that the expression names. In a time zone:
 *
 * - An expression that names its hours (`30 2 * * *`, `0 9-17 * * *`) runs each wall time once: the first time it is
 *   shown where clocks are set back, and at the moment of the jump where they are set forward past it.
 * - An expression whose hours are a wildcard or stepped (`*\/15 * * * *`, `0 *\/2 * * *`) follows elapsed time: it runs
 *   whenever the clock shows a named time, in both passes of an hour shown twice, and not for one that is skipped.
 * - A period of whole days keeps the wall-clock time of `start`, by the rule of named hours; any other is elapsed time.
 *
 * Without a zone all of it is UTC. Instants strictly increase, and none lies beyond the year 9999.
 */
import { dayMs } from '../kernel/text/duration.ts';
import { readCron } from './cron-walk.ts';
import { elapsedHours, elapsedPeriod, endOfTimeMs, namedHours, type Rule, wallPeriod } from './schedule-rules.ts';
import { accepted } from '../documents/values.ts';
import { zoneOf } from './zone.ts';

/** Exactly one of `periodMs` and `cron` is not null. */
export interface ScheduleSpec {
  readonly startMs: number;
  /** Exclusive. */
  readonly endMs: number | null;
  readonly periodMs: number | null;
  readonly cron: string | null;
  /** An IANA name; null: UTC. */
  readonly timezone: string | null;
}

export interface Schedule {
  readonly startMs: number;
  /** Exclusive; never null: time itself ends with the year 9999. */
  readonly endMs: number;
  /** What comes after `startMs`; it does not look at `endMs`. */
  readonly rule: Rule;
}

/** Does the parsing once. The spec must have passed validation; what has not throws. */
export function compileSchedule(spec: ScheduleSpec): Schedule {
  const endMs = Math.min(spec.endMs ?? endOfTimeMs, endOfTimeMs);
  return { startMs: spec.startMs, endMs, rule: ruleOf(spec) };
}

function ruleOf({ startMs, periodMs, cron, timezone }: ScheduleSpec): Rule {
  const zone = zoneOf(timezone);
  if (periodMs !== null) {
    const keepsWallTime = timezone !== null && periodMs % dayMs === 0;
    return keepsWallTime ? wallPeriod(zone, startMs, periodMs) : elapsedPeriod(startMs, periodMs);
  }
  const pattern = accepted(readCron(cron ?? ''));
  return pattern.namesHours ? namedHours(pattern, zone) : elapsedHours(pattern, zone);
}

/** The first instant strictly after `afterMs`, or undefined when there is none. */
export function nextInstant(schedule: Schedule, afterMs: number): number | undefined {
  const next = afterMs < schedule.startMs ? schedule.startMs : schedule.rule.following(afterMs);
  return next === undefined || next >= schedule.endMs ? undefined : next;
}

/** The instants with `fromMs` ≤ instant < `toMs`, in order, worked out as they are asked for. */
export function* instantsBetween(schedule: Schedule, fromMs: number, toMs: number): Generator<number, void, undefined> {
  let instant = nextInstant(schedule, fromMs - 1);
  while (instant !== undefined && instant < toMs) {
    yield instant;
    instant = nextInstant(schedule, instant);
  }
}

/** How many instants there are with `fromMs` ≤ instant < `toMs`, without walking them. */
export function countInstants(schedule: Schedule, fromMs: number, toMs: number): number {
  const { startMs, endMs, rule } = schedule;
  const [from, to] = [Math.max(fromMs, startMs + 1), Math.min(toMs, endMs)];
  const start = fromMs <= startMs && startMs < Math.min(toMs, endMs) ? 1 : 0;
  return start + (from < to ? rule.count(from, to) : 0);
}

/** The instant of the range that has `index` others of it before itself, found by counting. There must be one. */
export function instantAt(schedule: Schedule, fromMs: number, toMs: number, index: number): number {
  let [low, high] = [fromMs, toMs];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (countInstants(schedule, fromMs, middle) > index) high = middle;
    else low = middle;
  }
  return low;
}
