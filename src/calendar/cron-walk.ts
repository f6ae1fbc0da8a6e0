/**
 * Finds the next wall time that a cron pattern names.
 *
 * A wall time is the epoch milliseconds at which a clock in UTC would show it. This file knows nothing of time zones. The
 * search always ends: an expression whose years are over, or that names no day that exists, yields undefined at once.
 */
import { dayMs } from '../kernel/text/duration.ts';
import { type CronPattern, type FieldSet, parseCron } from './cron.ts';
import type { Read } from '../documents/values.ts';

/** Parses a cron expression, and rejects one that never fires. */
export function readCron(text: string): Read<CronPattern> {
  const parsed = parseCron(text);
  if (!parsed.ok || nextWall(parsed.value, 0) !== undefined) return parsed;
  return { ok: false, message: 'never fires: it names no day that exists' };
}

const lastYear = 9999;
/** The calendar repeats after 400 years, so a day that does not occur by then never does. */
const cycleYears = 400;

/** The first wall time, at `fromMs` or later, that the pattern names. */
export function nextWall(pattern: CronPattern, fromMs: number): number | undefined {
  const from = Math.ceil(fromMs / 1000) * 1000;
  const today = Math.floor(from / dayMs) * dayMs;
  const date = new Date(today);
  if (isNamedYear(pattern, date.getUTCFullYear()) && isNamedInYear(pattern, date)) {
    const time = nextTime(pattern, (from - today) / 1000);
    if (time !== undefined) return today + time * 1000;
  }
  const next = nextDay(pattern, date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate() + 1);
  const time = nextTime(pattern, 0);
  return next === undefined || time === undefined ? undefined : next + time * 1000;
}

/** The first second of the day, at `second` or later, whose hour, minute and second the pattern names. */
function nextTime(pattern: CronPattern, second: number): number | undefined {
  const { hours, minutes, seconds } = pattern;
  const [h, m, s] = [Math.floor(second / 3600), Math.floor(second / 60) % 60, second % 60];
  const hour = firstFrom(hours, h);
  if (hour < 0) return undefined;
  if (hour > h) return hour * 3600 + firstFrom(minutes, 0) * 60 + firstFrom(seconds, 0);
  const minute = firstFrom(minutes, m);
  if (minute === m && firstFrom(seconds, s) >= 0) return hour * 3600 + minute * 60 + firstFrom(seconds, s);
  const laterMinute = firstFrom(minutes, m + 1);
  if (laterMinute >= 0) return hour * 3600 + laterMinute * 60 + firstFrom(seconds, 0);
  const laterHour = firstFrom(hours, h + 1);
  return laterHour < 0 ? undefined : laterHour * 3600 + firstFrom(minutes, 0) * 60 + firstFrom(seconds, 0);
}

/** Midnight of the first day, at this date or later, that the pattern names. The day may be one past the month's end. */
function nextDay(pattern: CronPattern, year: number, month: number, day: number): number | undefined {
  const end = Math.min(lastYear, year + cycleYears);
  let firstMonth = month;
  let firstDay = day;
  for (let y = nextYear(pattern, year); y >= 0 && y <= end; y = nextYear(pattern, y + 1)) {
    if (y !== year) [firstMonth, firstDay] = [1, 1];
    for (let m = firstFrom(pattern.months, firstMonth); m >= 0; m = firstFrom(pattern.months, m + 1)) {
      const found = findDayInMonth(pattern, y, m, m === firstMonth ? firstDay : 1);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

function nextYear(pattern: CronPattern, year: number): number {
  return pattern.years === null ? year : firstFrom(pattern.years, year);
}

function findDayInMonth(pattern: CronPattern, year: number, month: number, from: number): number | undefined {
  const first = Date.UTC(year, month - 1, 1);
  const days = (Date.UTC(year, month, 1) - first) / dayMs;
  const weekdayOfFirst = new Date(first).getUTCDay();
  for (let day = from; day <= days; day++) {
    const weekday = (weekdayOfFirst + day - 1) % 7;
    if (isNamedDay(pattern, day, weekday)) return first + (day - 1) * dayMs;
  }
  return undefined;
}

export function isNamedYear(pattern: CronPattern, year: number): boolean {
  return nextYear(pattern, year) === year;
}

/** Whether the pattern names the day, which is given as its midnight, if it names the year. */
export function isNamedInYear(pattern: CronPattern, day: Date): boolean {
  return has(pattern.months, day.getUTCMonth() + 1) && isNamedDay(pattern, day.getUTCDate(), day.getUTCDay());
}

function isNamedDay(pattern: CronPattern, day: number, weekday: number): boolean {
  const byDate = has(pattern.daysOfMonth, day);
  const byWeekday = has(pattern.daysOfWeek, weekday);
  return pattern.eitherDay ? byDate || byWeekday : byDate && byWeekday;
}

function firstFrom(set: FieldSet, number: number): number {
  return set.from[number] ?? -1;
}

function has(set: FieldSet, number: number): boolean {
  return set.from[number] === number;
}
