/**
 * An oracle for schedules that shares no code with the product. It asks Intl for the wall time of every minute of a window
 * (clocks have not changed within a minute for a century). It tries every minute or second, parses expressions with a few
 * naive lines of its own, and applies the rules of docs/jobs.md:
 * - named hours run each wall time once: when it is first shown, or at the jump that skips it;
 * - wildcard and stepped hours run whenever a named time is shown.
 *
 * A wall time is represented by the epoch time at which a clock in UTC shows the same.
 */

/** Wall times in columns, which are fast to scan, each with the moment it occurs at. */
interface Moments {
  readonly at: readonly number[];
  readonly wallMs: readonly number[];
  readonly second: Uint8Array;
  readonly minute: Uint8Array;
  readonly hour: Uint8Array;
  readonly day: Uint8Array;
  readonly month: Uint8Array;
  readonly year: Uint16Array;
  /** Sunday is 0. */
  readonly weekday: Uint8Array;
}

export interface Place {
  readonly zone: string;
  /** The window that test cases cover; the clock extends a little beyond it on both sides. */
  readonly fromMs: number;
  readonly toMs: number;
  /** The wall times that the clock shows, moment by moment. */
  readonly shown: Moments;
  /** Every possible wall time, shown or skipped, with the moment at which it runs. */
  readonly walls: Moments;
}

function momentsOf(at: readonly number[], wallMs: readonly number[]): Moments {
  const dates = wallMs.map((ms) => new Date(ms));
  return {
    at,
    wallMs,
    second: Uint8Array.from(dates, (date) => date.getUTCSeconds()),
    minute: Uint8Array.from(dates, (date) => date.getUTCMinutes()),
    hour: Uint8Array.from(dates, (date) => date.getUTCHours()),
    day: Uint8Array.from(dates, (date) => date.getUTCDate()),
    month: Uint8Array.from(dates, (date) => date.getUTCMonth() + 1),
    year: Uint16Array.from(dates, (date) => date.getUTCFullYear()),
    weekday: Uint8Array.from(dates, (date) => date.getUTCDay()),
  };
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

export interface PlaceOptions {
  readonly zone: string;
  /** The middle of the window. */
  readonly around: string;
  readonly hours: number;
  readonly guardHours: number;
  readonly stepMs: 1_000 | 60_000;
}

export function placeOf({ zone, around, hours, guardHours, stepMs }: PlaceOptions): Place {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' });
  const fromMs = Date.parse(around) - (hours / 2) * hourMs;
  const toMs = fromMs + hours * hourMs;
  const [at, wallMs]: [number[], number[]] = [[], []];
  for (let minute = fromMs - guardHours * hourMs; minute < toMs + guardHours * hourMs; minute += minuteMs) {
    const wall = Date.parse(`${format.format(minute).replace(' ', 'T')}Z`);
    for (let more = 0; more < minuteMs; more += stepMs) {
      at.push(minute + more);
      wallMs.push(wall + more);
    }
  }
  return { zone, fromMs, toMs, shown: momentsOf(at, wallMs), walls: wallsOf(at, wallMs, stepMs) };
}

function wallsOf(at: readonly number[], shown: readonly number[], stepMs: number): Moments {
  const firstShown = new Map<number, number>();
  for (const [i, wall] of shown.entries()) if (!firstShown.has(wall)) firstShown.set(wall, at[i] ?? Number.NaN);
  const known = [...firstShown.keys()].sort((a, b) => a - b);
  const [runsAt, wallMs]: [number[], number[]] = [[], []];
  for (let wall = known[0] ?? 0; wall <= (known.at(-1) ?? 0); wall += stepMs) {
    runsAt.push(firstShown.get(wall) ?? at[shown.findIndex((later) => later > wall)] ?? Number.NaN);
    wallMs.push(wall);
  }
  return momentsOf(runsAt, wallMs);
}

const monthNames = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
export const weekdayNames = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** For each number n, whether the field names it. `names[0]` stands for `min`; an open range ends at `max`. */
function members(field: string, min: number, max: number, names: readonly string[] = []): boolean[] {
  const number = (text: string): number => {
    const named = names.indexOf(text.toLowerCase());
    return named < 0 ? Number(text) : min + named;
  };
  const found: boolean[] = [];
  for (const item of field.split(',')) {
    const [range = '', step = '1'] = item.split('/');
    const [low = '', high] = range.split('-');
    const any = low === '*' || low === '?';
    const first = any ? min : number(low);
    const last = any || (high === undefined && item.includes('/')) ? Math.max(first, max) : number(high ?? low);
    for (let value = first; value <= last; value += Number(step)) found[value] = true;
  }
  return found;
}

/** The moments that an expression matches. */
function matchMoments(cron: string, moments: Moments): number[] {
  const given = cron.split(' ');
  const unix = given.length === 5;
  const fields = unix ? ['0', ...given] : given;
  const [second = '', minute = '', hour = '', day = '', month = '', weekday = '', year = '*'] = fields;
  const [seconds, minutes, hours] = [members(second, 0, 59), members(minute, 0, 59), members(hour, 0, 23)] as const;
  const [days, months] = [members(day, 1, 31), members(month, 1, 12, monthNames)] as const;
  const years = members(year, 1970, 2100);
  // a week begins with Sunday; in five fields 7 is another number for Sunday
  const weekdays = unix ? members(weekday, 0, 6, weekdayNames) : members(weekday, 1, 7, weekdayNames);
  const isWeekday = (sundayIs0: number): boolean =>
    unix
      ? (weekdays[sundayIs0] ?? false) || (sundayIs0 === 0 && (weekdays[7] ?? false))
      : weekdays[sundayIs0 + 1] === true;
  const either = unix && !/^[*?]/.test(day) && !/^[*?]/.test(weekday);
  return moments.at.filter((_, i) => {
    if (!seconds[moments.second[i] ?? -1] || !minutes[moments.minute[i] ?? -1]) return false;
    if (!hours[moments.hour[i] ?? -1] || !months[moments.month[i] ?? -1] || !years[moments.year[i] ?? -1]) return false;
    const [byDay, byWeekday] = [days[moments.day[i] ?? -1] === true, isWeekday(moments.weekday[i] ?? -1)];
    return either ? byDay || byWeekday : byDay && byWeekday;
  });
}

/** Whether the hours are named: neither a wildcard nor a step, and not all 24 of them. */
function namesHours(cron: string): boolean {
  const fields = cron.split(' ');
  const hours = fields[fields.length === 5 ? 1 : 2] ?? '';
  return !/[*/]/.test(hours) && members(hours, 0, 23).filter(Boolean).length < 24;
}

/** The instants of an expression within the window of a place. */
export function cronInstants(cron: string, place: Place): number[] {
  return within(place, matchMoments(cron, namesHours(cron) ? place.walls : place.shown));
}

/** The instants of a period of whole days, including its start, which must lie within the place's clock. */
export function dayPeriodInstants(startMs: number, days: number, place: Place): number[] {
  const start = place.shown.wallMs[place.shown.at.indexOf(startMs)];
  if (start === undefined) throw new Error('the start lies outside the window of the clock');
  const later = place.walls.at.filter((_, i) => {
    const after = (place.walls.wallMs[i] ?? 0) - start;
    return after > 0 && after % (days * 24 * hourMs) === 0;
  });
  return within(place, [startMs, ...later]);
}

function within({ fromMs, toMs }: Place, instants: readonly number[]): number[] {
  return [...new Set(instants)].filter((instant) => instant >= fromMs && instant < toMs).sort((a, b) => a - b);
}
