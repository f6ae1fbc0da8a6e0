/**
 * Computes the instants of a trigger.
 *
 * `start` is always an instant, even if the cron expression does not name it. `end` is exclusive. After `start` come the
 * multiples of the period, or the moments that the expression names. In a time zone:
 *
 * - An expression that names its hours (`30 2 * * *`, `0 9-17 * * *`) fires once for each wall time. If clocks are set
 *   back, it fires the first time that the clock shows it. If clocks are set forward past it, it fires at the jump.
 * - An expression whose hours are a wildcard or stepped (`*\/15 * * * *`, `0 *\/2 * * *`) follows elapsed time. It fires
 *   whenever the clock shows a named time: in both passes of a repeated hour, and not for a skipped one.
 * - A period of whole days keeps the wall-clock time of `start`, by the rule of named hours. Any other is elapsed time.
 *
 * Without a zone, all of this is in UTC. Instants strictly increase, and none lies beyond the year 9999.
 */
import { dayMs } from '../kernel/text/duration.ts';
import { readCron } from './cron-walk.ts';
import { elapsedHours, elapsedPeriod, endOfTimeMs, namedHours, type Rule, wallPeriod } from './schedule-rules.ts';
import { unwrapRead } from '../documents/values.ts';
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
  /** Exclusive. Never later than the end of the year 9999. */
  readonly endMs: number;
  /** Gives the instants after `startMs`; ignores `endMs`. */
  readonly rule: Rule;
}

/** Parses the spec once. Throws if the spec has not passed validation. */
export function compileSchedule(spec: ScheduleSpec): Schedule {
  const endMs = Math.min(spec.endMs ?? endOfTimeMs, endOfTimeMs);
  return { startMs: spec.startMs, endMs, rule: makeRule(spec) };
}

function makeRule({ startMs, periodMs, cron, timezone }: ScheduleSpec): Rule {
  const zone = zoneOf(timezone);
  if (periodMs !== null) {
    const keepsWallTime = timezone !== null && periodMs % dayMs === 0;
    return keepsWallTime ? wallPeriod(zone, startMs, periodMs) : elapsedPeriod(startMs, periodMs);
  }
  const pattern = unwrapRead(readCron(cron ?? ''));
  return pattern.namesHours ? namedHours(pattern, zone) : elapsedHours(pattern, zone);
}

/** The first instant strictly after `afterMs`, or undefined when there is none. */
export function nextInstant(schedule: Schedule, afterMs: number): number | undefined {
  const next = afterMs < schedule.startMs ? schedule.startMs : schedule.rule.following(afterMs);
  return next === undefined || next >= schedule.endMs ? undefined : next;
}

/** Yields the instants with `fromMs` ≤ instant < `toMs`, in order. */
export function* instantsBetween(schedule: Schedule, fromMs: number, toMs: number): Generator<number, void, undefined> {
  let instant = nextInstant(schedule, fromMs - 1);
  while (instant !== undefined && instant < toMs) {
    yield instant;
    instant = nextInstant(schedule, instant);
  }
}

/** Counts the instants with `fromMs` ≤ instant < `toMs`, without walking them. */
export function countInstants(schedule: Schedule, fromMs: number, toMs: number): number {
  const { startMs, endMs, rule } = schedule;
  const [from, to] = [Math.max(fromMs, startMs + 1), Math.min(toMs, endMs)];
  const start = fromMs <= startMs && startMs < Math.min(toMs, endMs) ? 1 : 0;
  return start + (from < to ? rule.count(from, to) : 0);
}

/** The instant of the range at `index` (from 0), found by counting. The range must have that many. */
export function instantAt(schedule: Schedule, fromMs: number, toMs: number, index: number): number {
  let [low, high] = [fromMs, toMs];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (countInstants(schedule, fromMs, middle) > index) high = middle;
    else low = middle;
  }
  return low;
}
