/**
 * Time zones: the wall time at an instant, and the instant of a wall time.
 *
 * A zone is a sequence of stretches of time with one offset each. They are computed with Intl, one year at a time, and
 * cached. A wall time is the epoch milliseconds at which a clock in UTC would show it, so wall = instant + offset.
 */
import { dayMs } from '../kernel/text/duration.ts';

/** While `fromMs` ≤ instant < `toMs`, the wall clock shows instant + `offsetMs`. Neighbours may have the same offset. */
interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
  readonly offsetMs: number;
}

/** A clock change: before `atMs` the offset is `beforeMs`, from then on `afterMs`. */
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

const endless: Stretch = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY, offsetMs: 0 };
const utc: Zone = { stretchAt: () => endless };

const zones = new Map<string, Zone>();

/** Throws a RangeError for a name that Intl does not know. Check with `isZone` first. */
export function zoneOf(name: string | null): Zone {
  if (name === null) return utc;
  // Intl ignores the case of a name; cache each zone once
  const key = name.toLowerCase();
  const found = zones.get(key);
  if (found !== undefined) return found;
  const zone = makeIntlZone(name);
  zones.set(key, zone);
  return zone;
}

const zoneNames = new Map<string, boolean>();

/** Accepts names only. Newer versions of Intl also accept bare offsets (`+02:00`), older ones do not. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z][\w+/-]{1,60}$/.test(name)) return false;
  const answer = zoneNames.get(name) ?? isKnownToIntl(name);
  if (zoneNames.size < 1_000) zoneNames.set(name, answer);
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
 * The instant at which the wall clock first shows `wallMs`. In an overlap (shown twice) it is the first of the two; in a
 * gap (never shown) it is the moment at which the clock jumps past `wallMs`.
 */
export function firstShown(zone: Zone, wallMs: number): number {
  // no offset exceeds a day, so the clock shows `wallMs`, or jumps past it, within a day of its UTC reading
  let stretch = zone.stretchAt(wallMs - 2 * dayMs);
  for (;;) {
    const instant = wallMs - stretch.offsetMs;
    if (instant < stretch.fromMs) return stretch.fromMs;
    if (instant < stretch.toMs) return instant;
    stretch = zone.stretchAt(stretch.toMs);
  }
}

function makeIntlZone(name: string): Zone {
  const years = new Map<number, readonly Stretch[]>();
  const offsetAt = makeOffsetReader(name);
  function stretchAt(instantMs: number): Stretch {
    const year = new Date(instantMs).getUTCFullYear();
    if (year > lastYearFromIntl) return mapToEarlierYear(stretchAt, instantMs, year);
    let stretches = years.get(year);
    if (stretches === undefined) {
      stretches = findStretches(year, offsetAt);
      years.set(year, stretches);
    }
    const found = stretches.find(({ toMs }) => instantMs < toMs);
    if (found === undefined) throw new RangeError(`no such instant: ${instantMs}`);
    return found;
  }
  return { stretchAt };
}

/**
 * Later years are mapped to an earlier year, which bounds the calls of Intl and the cache. By then zones follow rules such
 * as "the last Sunday of March", so a year equals the one of the preceding 28 that begins on the same weekday and has the
 * same length.
 */
const lastYearFromIntl = 2128;

function mapToEarlierYear(stretchAt: Zone['stretchAt'], instantMs: number, year: number): Stretch {
  const start = Date.UTC(year, 0, 1);
  const length = Date.UTC(year + 1, 0, 1) - start;
  const weekday = new Date(start).getUTCDay();
  for (let like = lastYearFromIntl; ; like--) {
    const likeStart = Date.UTC(like, 0, 1);
    if (new Date(likeStart).getUTCDay() !== weekday || Date.UTC(like + 1, 0, 1) - likeStart !== length) continue;
    const shift = start - likeStart;
    const { fromMs, toMs, offsetMs } = stretchAt(instantMs - shift);
    return { fromMs: fromMs + shift, toMs: toMs + shift, offsetMs };
  }
}

type OffsetReader = (instantMs: number) => number;

/**
 * The interval between two samples of the offset. The closest two changes of any zone from 1968 to 2038 were seven days
 * apart (Recife, October 2000). Each sample costs some microseconds, and a schedule may begin in 1970.
 */
const sampleEveryMs = 3 * dayMs;

/** Samples the offset every few days, then bisects to find each change. */
function findStretches(year: number, offsetAt: OffsetReader): readonly Stretch[] {
  const [start, end] = [Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 1)];
  const stretches: Stretch[] = [];
  let fromMs = start;
  let offsetMs = offsetAt(start);
  for (let sampleMs = start + sampleEveryMs; sampleMs < end + sampleEveryMs; sampleMs += sampleEveryMs) {
    const next = offsetAt(Math.min(sampleMs, end - 1000));
    if (next === offsetMs) continue;
    const toMs = findChange(sampleMs - sampleEveryMs, Math.min(sampleMs, end - 1000), offsetAt);
    stretches.push({ fromMs, toMs, offsetMs });
    fromMs = toMs;
    offsetMs = next;
  }
  stretches.push({ fromMs, toMs: end, offsetMs });
  return stretches;
}

/** The first whole second at which the offset differs from that at `beforeMs`. */
function findChange(beforeMs: number, afterMs: number, offsetAt: OffsetReader): number {
  const old = offsetAt(beforeMs);
  let [before, after] = [beforeMs / 1000, afterMs / 1000];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (offsetAt(middle * 1000) === old) before = middle;
    else after = middle;
  }
  return after * 1000;
}

const formattedTime = /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+):(\d+)$/;

function makeOffsetReader(name: string): OffsetReader {
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
    const [, month, day, year, hour, minute, second] = (formattedTime.exec(format.format(instantMs)) ?? []).map(Number);
    const wall = Date.UTC(year ?? Number.NaN, (month ?? 1) - 1, day, hour, minute, second);
    if (Number.isNaN(wall)) throw new RangeError(`Intl does not say what a clock in ${name} shows`);
    return wall - Math.floor(instantMs / 1000) * 1000;
  };
}

export function zoneFault(value: string): string | undefined {
  return isZone(value) ? undefined : 'is not an IANA time zone such as Europe/Berlin';
}
