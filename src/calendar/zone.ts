/**
 * Time zones: what a wall clock somewhere shows, and when it shows something.
 *
 * A zone is a row of stretches of time with one offset each, found with Intl a year at a time and kept. A wall time is
 * written as the epoch milliseconds at which a clock in UTC would show it, so wall = instant + offset.
 */
import { dayMs } from '../kernel/text/duration.ts';

/** While `fromMs` ≤ instant < `toMs`, the wall clock shows instant + `offsetMs`. Neighbours may have the same offset. */
interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
  readonly offsetMs: number;
}

/** Clocks go: until `atMs` the offset is `beforeMs`, from then on `afterMs`. */
interface ClockChange {
  readonly atMs: number;
  readonly beforeMs: number;
  readonly afterMs: number;
}

export interface Zone {
  stretchAt(instantMs: number): Stretch;
}

/** The changes with `fromMs` ≤ change < `toMs`, in order. */
export function* changesBetween(zone: Zone, fromMs: number, toMs: number): Generator<ClockChange, void, undefined> {
  let stretch = zone.stretchAt(fromMs - 1);
  while (stretch.toMs < toMs) {
    const next = zone.stretchAt(stretch.toMs);
    if (next.offsetMs !== stretch.offsetMs) {
      yield { atMs: stretch.toMs, beforeMs: stretch.offsetMs, afterMs: next.offsetMs };
    }
    stretch = next;
  }
}

const always: Stretch = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY, offsetMs: 0 };
const utc: Zone = { stretchAt: () => always };

const known = new Map<string, Zone>();

/** Throws a RangeError for a name that Intl does not know; `isZone` asks first. */
export function zoneOf(name: string | null): Zone {
  if (name === null) return utc;
  // Intl takes a name in any case; each zone is kept once
  const key = name.toLowerCase();
  const found = known.get(key);
  if (found !== undefined) return found;
  const zone = intlZone(name);
  known.set(key, zone);
  return zone;
}

const asked = new Map<string, boolean>();

/** Only names: the bare offsets that newer versions of Intl also take (`+02:00`) are not the same everywhere. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z][\w+/-]{1,60}$/.test(name)) return false;
  const answer = asked.get(name) ?? isKnownToIntl(name);
  if (asked.size < 1_000) asked.set(name, answer);
  return answer;
}

function isKnownToIntl(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

/**
 * When the wall clock first shows `wallMs`. Where it shows it twice (an overlap) the first time counts; where it never
 * does (a gap) the moment at which the clock jumps past it.
 */
export function firstShown(zone: Zone, wallMs: number): number {
  // no offset is beyond a day, so the clock shows it within a day of its UTC reading, or jumps past it there
  let stretch = zone.stretchAt(wallMs - 2 * dayMs);
  for (;;) {
    const instant = wallMs - stretch.offsetMs;
    if (instant < stretch.fromMs) return stretch.fromMs;
    if (instant < stretch.toMs) return instant;
    stretch = zone.stretchAt(stretch.toMs);
  }
}

function intlZone(name: string): Zone {
  const years = new Map<number, readonly Stretch[]>();
  const offsetAt = offsetReader(name);
  function stretchAt(instantMs: number): Stretch {
    const year = new Date(instantMs).getUTCFullYear();
    if (year > lastYearAsked) return later(stretchAt, instantMs, year);
    let stretches = years.get(year);
    if (stretches === undefined) {
      stretches = stretchesOf(year, offsetAt);
      years.set(year, stretches);
    }
    const found = stretches.find(({ toMs }) => instantMs < toMs);
    if (found === undefined) throw new RangeError(`no such instant: ${instantMs}`);
    return found;
  }
  return { stretchAt };
}

/**
 * By then zones follow rules such as "the last Sunday of March", so a year is like the one in these 28 that begins on the
 * same weekday and is as long. It bounds what is asked of Intl and kept, however far ahead somebody looks.
 */
const lastYearAsked = 2128;

function later(stretchAt: Zone['stretchAt'], instantMs: number, year: number): Stretch {
  const start = Date.UTC(year, 0, 1);
  const length = Date.UTC(year + 1, 0, 1) - start;
  const weekday = new Date(start).getUTCDay();
  for (let like = lastYearAsked; ; like--) {
    const likeStart = Date.UTC(like, 0, 1);
    if (new Date(likeStart).getUTCDay() !== weekday || Date.UTC(like + 1, 0, 1) - likeStart !== length) continue;
    const shift = start - likeStart;
    const { fromMs, toMs, offsetMs } = stretchAt(instantMs - shift);
    return { fromMs: fromMs + shift, toMs: toMs + shift, offsetMs };
  }
}

type OffsetReader = (instantMs: number) => number;

/**
 * Days between two looks at the clock. The two changes that ever lay nearest to each other were seven days apart (Recife,
 * October 2000; all zones from 1968 to 2038). Each look costs some microseconds, and a schedule may begin in 1970.
 */
const lookEveryMs = 3 * dayMs;

/** Looks every few days, then closes in on each change. */
function stretchesOf(year: number, offsetAt: OffsetReader): readonly Stretch[] {
  const [start, end] = [Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 1)];
  const stretches: Stretch[] = [];
  let fromMs = start;
  let offsetMs = offsetAt(start);
  for (let look = start + lookEveryMs; look < end + lookEveryMs; look += lookEveryMs) {
    const next = offsetAt(Math.min(look, end - 1000));
    if (next === offsetMs) continue;
    const toMs = changeBetween(look - lookEveryMs, Math.min(look, end - 1000), offsetAt);
    stretches.push({ fromMs, toMs, offsetMs });
    fromMs = toMs;
    offsetMs = next;
  }
  stretches.push({ fromMs, toMs: end, offsetMs });
  return stretches;
}

/** The first whole second at which the offset is no longer that at `beforeMs`. */
function changeBetween(beforeMs: number, afterMs: number, offsetAt: OffsetReader): number {
  const old = offsetAt(beforeMs);
  let [before, after] = [beforeMs / 1000, afterMs / 1000];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (offsetAt(middle * 1000) === old) before = middle;
    else after = middle;
  }
  return after * 1000;
}

const shown = /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+):(\d+)$/;

function offsetReader(name: string): OffsetReader {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: name,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  return (instantMs) => {
    const [, month, day, year, hour, minute, second] = (shown.exec(format.format(instantMs)) ?? []).map(Number);
    const wall = Date.UTC(year ?? Number.NaN, (month ?? 1) - 1, day, hour, minute, second);
    if (Number.isNaN(wall)) throw new RangeError(`Intl does not say what a clock in ${name} shows`);
    return wall - Math.floor(instantMs / 1000) * 1000;
  };
}

export function zoneFault(value: string): string | undefined {
  return isZone(value) ? undefined : 'is not an IANA time zone such as Europe/Berlin';
}
