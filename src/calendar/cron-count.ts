/**
 * Counts the wall times of a range that a pattern names, without walking them. A range of decades takes microseconds.
 * Wall times are written as in `cron-walk.ts`.
 */
import { dayMs } from '../kernel/text/duration.ts';
import type { CronPattern } from './cron.ts';
import { isNamedInYear, isNamedYear } from './cron-walk.ts';

/** A set of wall times. */
export interface WallSet {
  /** The number of members with `fromMs` ≤ wall < `toMs`. Negative if the range runs backwards. */
  count(fromMs: number, toMs: number): number;
  has(wallMs: number): boolean;
}

/** At the beginning of the epoch, a clock west of UTC still shows the last hours of this year. */
const firstYear = 1969;

/** Keyed by pattern: many triggers share few patterns. */
const wallSets = new WeakMap<CronPattern, WallSet>();

export function namedWalls(pattern: CronPattern): WallSet {
  const walls = wallSets.get(pattern) ?? makeWallSet(pattern);
  wallSets.set(pattern, walls);
  return walls;
}

function makeWallSet(pattern: CronPattern): WallSet {
  const daysBefore = makeDayCounter(pattern);
  const timesPerDay = countTimesBefore(pattern, 86_400);
  const below = (wallMs: number): number => {
    const midnight = Math.floor(wallMs / dayMs) * dayMs;
    const before = daysBefore(midnight);
    const today = daysBefore(midnight + dayMs) > before;
    return before * timesPerDay + (today ? countTimesBefore(pattern, Math.ceil((wallMs - midnight) / 1000)) : 0);
  };
  const count = (fromMs: number, toMs: number): number => below(toMs) - below(fromMs);
  return { count, has: (wallMs) => count(wallMs, wallMs + 1) > 0 };
}

/** `start` plus one, two, three… periods. */
export function steppedWalls(startMs: number, periodMs: number): WallSet {
  const below = (wallMs: number): number => Math.max(0, Math.ceil((wallMs - startMs) / periodMs) - 1);
  return {
    count: (fromMs, toMs) => below(toMs) - below(fromMs),
    has: (wallMs) => wallMs > startMs && (wallMs - startMs) % periodMs === 0,
  };
}

/** The number of named times of the day before `second`. */
function countTimesBefore({ hours, minutes, seconds }: CronPattern, second: number): number {
  const [h, m, s] = [Math.floor(second / 3600), Math.floor(second / 60) % 60, second % 60];
  const perMinute = seconds.below[60] ?? 0;
  const perHour = (minutes.below[60] ?? 0) * perMinute;
  const inMinute = minutes.from[m] === m ? (seconds.below[s] ?? 0) : 0;
  const inHour = hours.from[h] === h ? (minutes.below[m] ?? 0) * perMinute + inMinute : 0;
  return (hours.below[h] ?? 0) * perHour + inHour;
}

/**
 * Returns a function that counts the named days before a midnight. Years that begin on the same weekday and have the same
 * length have the same named days, so there are only fourteen calendars.
 */
function makeDayCounter(pattern: CronPattern): (midnightMs: number) => number {
  const calendars = new Map<number, Uint16Array>();
  const calendarOf = (year: number): Uint16Array => {
    const start = Date.UTC(year, 0, 1);
    const key = new Date(start).getUTCDay() * 2 + ((Date.UTC(year + 1, 0, 1) - start) / dayMs === 366 ? 1 : 0);
    const calendar = calendars.get(key) ?? countNamedDays(pattern, year);
    calendars.set(key, calendar);
    return calendar;
  };
  /** Named days before the n-th year, counted from `firstYear`. */
  const before: number[] = [0];
  return (midnightMs) => {
    const year = new Date(midnightMs).getUTCFullYear();
    for (let y = firstYear + before.length - 1; y < year; y++) {
      before.push((before.at(-1) ?? 0) + (isNamedYear(pattern, y) ? (calendarOf(y).at(-1) ?? 0) : 0));
    }
    const inYear = isNamedYear(pattern, year) ? calendarOf(year)[(midnightMs - Date.UTC(year, 0, 1)) / dayMs] : 0;
    return (before[year - firstYear] ?? 0) + (inYear ?? 0);
  };
}

/** Entry n is the number of named days among the first n days of the year. The pattern's own years are ignored. */
function countNamedDays(pattern: CronPattern, year: number): Uint16Array {
  const start = Date.UTC(year, 0, 1);
  const days = (Date.UTC(year + 1, 0, 1) - start) / dayMs;
  const counts = new Uint16Array(days + 1);
  for (let n = 0; n < days; n++) {
    counts[n + 1] = (counts[n] ?? 0) + (isNamedInYear(pattern, new Date(start + n * dayMs)) ? 1 : 0);
  }
  return counts;
}
