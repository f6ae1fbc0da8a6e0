/**
 * The grammar of cron expressions: text → the sets of seconds, minutes, hours, days, months and years that it names.
 *
 * - Six or seven fields, `second minute hour day-of-month month day-of-week [year]`, count as Waterwheel (the Rust crate
 *   `cron`) does: Sunday is 1, Saturday 7; years 1970 to 2100. A day must satisfy day-of-month *and* day-of-week.
 * - Five fields, `minute hour day-of-month month day-of-week`, count as ordinary cron does: Sunday is 0 or 7. When both
 *   day fields are restricted (neither begins with `*`), a day that satisfies *either* will do.
 * - `@yearly` (`@annually`), `@monthly`, `@weekly` (Sunday), `@daily` (`@midnight`), `@hourly`.
 *
 * A field is a comma list of `*`, `5`, `1-5`, `1/10` (from 1 on, every tenth), `*\/10`, `1-30/10`; months and days also go
 * by name (three letters or more, in any case); `?` means `*` in the day fields.
 */
import type { Read } from '../documents/values.ts';

/** A set of small numbers. `from[i]` is the least member that is at least i, or -1. `below[i]` is the number of members below i. */
export interface FieldSet {
  readonly from: readonly number[];
  readonly below: readonly number[];
}

export interface CronPattern {
  readonly seconds: FieldSet;
  readonly minutes: FieldSet;
  readonly hours: FieldSet;
  readonly daysOfMonth: FieldSet;
  readonly months: FieldSet;
  /** Sunday is 0, however the expression numbers its days. */
  readonly daysOfWeek: FieldSet;
  /** null: every year. */
  readonly years: FieldSet | null;
  /** Whether a day matches if either day-of-month or day-of-week does. */
  readonly eitherDay: boolean;
  /** Whether the expression lists its hours, instead of giving them by a wildcard or a step. */
  readonly namesHours: boolean;
}

interface FieldSpec {
  readonly key: string;
  readonly label: string;
  readonly min: number;
  readonly max: number;
  /** The largest member of `*` and of an open-ended `a/n`, if it differs from `max`. */
  readonly last?: number;
  /** Names in order. The first stands for `min`. */
  readonly names?: readonly string[];
  /** Whether `?` is allowed. */
  readonly any?: boolean;
  /** Converts a member from the expression's numbering to the pattern's. */
  readonly normalize?: (member: number) => number;
}

const months = 'january february march april may june july august september october november december'.split(' ');
const weekdays = 'sunday monday tuesday wednesday thursday friday saturday'.split(' ');
const second: FieldSpec = { key: 's', label: 'second', min: 0, max: 59 };
const minute: FieldSpec = { key: 'm', label: 'minute', min: 0, max: 59 };
const hour: FieldSpec = { key: 'h', label: 'hour', min: 0, max: 23 };
const dayOfMonth: FieldSpec = { key: 'd', label: 'day of the month', min: 1, max: 31, any: true };
const month: FieldSpec = { key: 'M', label: 'month', min: 1, max: 12, names: months };
const weekday = { label: 'day of the week', max: 7, names: weekdays, any: true } as const;
const rustWeekday: FieldSpec = { ...weekday, key: 'w', min: 1, normalize: (day) => day - 1 };
const unixWeekday: FieldSpec = { ...weekday, key: 'W', min: 0, last: 6, normalize: (day) => day % 7 };
const year: FieldSpec = { key: 'y', label: 'year', min: 1970, max: 2100 };

const shorthands = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

const maxTextChars = 1_000;

/**
 * Entries per cache. A hundred thousand triggers share few expressions, and even fewer fields, so the caches rarely fill
 * up. A full cache is cleared.
 */
const maxCacheEntries = 10_000;
const patternCache = new Map<string, Read<CronPattern>>();
const fieldCache = new Map<string, Field | string>();

function getOrMake<T>(cache: Map<string, T>, key: string, make: () => T): T {
  const found = cache.get(key);
  if (found !== undefined) return found;
  const made = make();
  if (cache.size >= maxCacheEntries) cache.clear();
  cache.set(key, made);
  return made;
}

export function parseCron(text: string): Read<CronPattern> {
  if (text.length > maxTextChars) return reject('is too long for a cron expression');
  return getOrMake(patternCache, text, () => parseUncached(text));
}

function parseUncached(text: string): Read<CronPattern> {
  const trimmed = text
    .split(',')
    .map((part) => part.trim())
    .join(',');
  if (trimmed.startsWith('@')) {
    const meaning = shorthands.get(trimmed.toLowerCase());
    return meaning === undefined ? reject(`is not one of ${[...shorthands.keys()].join(', ')}`) : parseCron(meaning);
  }
  const fields = trimmed.split(/\s+/);
  if (fields.length === 5) return parsePattern(['0', ...fields], unixWeekday);
  if (fields.length === 6 || fields.length === 7) return parsePattern(fields, rustWeekday);
  return reject(
    'must have five fields (minute hour day month weekday), six (second first), seven (year last), or be @daily or the like',
  );
}

function parsePattern(fields: readonly string[], days: FieldSpec): Read<CronPattern> {
  const specs = [second, minute, hour, dayOfMonth, month, days, year];
  const read: Field[] = [];
  const faults: string[] = [];
  for (const [i, text] of fields.entries()) {
    const spec = specs[i] ?? year;
    const field = getOrMake(fieldCache, `${spec.key} ${text}`, () => parseField(text, spec));
    if (typeof field === 'string') faults.push(field);
    else read.push(field);
  }
  if (faults.length > 0) return reject(faults.join('; and '));
  const [seconds = none, minutes = none, hours = none, monthDays = none, monthSet = none, weekDays = none, years] =
    read;
  return {
    ok: true,
    value: {
      seconds: seconds.set,
      minutes: minutes.set,
      hours: hours.set,
      daysOfMonth: monthDays.set,
      months: monthSet.set,
      daysOfWeek: weekDays.set,
      years: years === undefined || fields[6] === '*' ? null : years.set,
      eitherDay: days === unixWeekday && !monthDays.open && !weekDays.open,
      namesHours: !hours.stepped && hours.size < 24,
    },
  };
}

interface Field {
  readonly set: FieldSet;
  readonly size: number;
  /** The field begins with a wildcard, so the other day field decides. */
  readonly open: boolean;
  /** The field gives its numbers by a wildcard or a step, instead of listing them. */
  readonly stepped: boolean;
}

const none: Field = { set: { from: [], below: [] }, size: 0, open: false, stepped: false };

const item = /^(\*|\?|[A-Za-z]+|\d+)(?:-([A-Za-z]+|\d+))?(?:\/(\d+))?$/;

/** Returns the field, or a message that says what is wrong with it. */
function parseField(text: string, spec: FieldSpec): Field | string {
  const members = new Set<number>();
  for (const part of text.split(',')) {
    const found = parseItem(part, spec);
    if (typeof found === 'string') return found;
    for (const member of found) members.add(spec.normalize?.(member) ?? member);
  }
  return {
    set: makeFieldSet(members, spec.max),
    size: members.size,
    open: text.startsWith('*') || text.startsWith('?'),
    stepped: /[*/]/.test(text),
  };
}

function parseItem(text: string, spec: FieldSpec): number[] | string {
  const where = `has ${JSON.stringify(text)} as ${spec.label}`;
  const [, first, end, stepText] = item.exec(text) ?? [];
  if (first === undefined) {
    return /[LW#]/i.test(text) ? `${where}; L, W and # are not supported` : `${where}, which is not understood`;
  }
  const open = first === '*' || first === '?';
  if (open && end !== undefined) return `${where}, which is not understood`;
  if (first === '?' && spec.any !== true) return `${where}; ? may stand only for days`;
  const step = stepText === undefined ? 1 : Number(stepText);
  if (step < 1) return `${where}, a step of zero`;
  const low = open ? spec.min : parseNumber(first, spec);
  const high = parseHighEnd(spec, { open, first, end, stepped: stepText !== undefined });
  const range = `${spec.min} to ${spec.max}`;
  if (low === undefined || high === undefined) return `${where}; it must be ${range}${spec.names ? ', or a name' : ''}`;
  if (low > high) return `${where}, a range that runs backwards; write it as two`;
  return listSteps(low, high, step);
}

function parseHighEnd(
  spec: FieldSpec,
  parts: { open: boolean; first: string; end: string | undefined; stepped: boolean },
): number | undefined {
  if (parts.end !== undefined) return parseRangeEnd(parts.end, spec);
  if (parts.open || parts.stepped) return Math.max(spec.last ?? spec.max, parseNumber(parts.first, spec) ?? 0);
  return parseNumber(parts.first, spec);
}

/** In ordinary cron, Sunday may also end a range: `mon-sun`. */
function parseRangeEnd(text: string, spec: FieldSpec): number | undefined {
  const number = parseNumber(text, spec);
  return number === 0 && spec.last === 6 && text !== '0' ? 7 : number;
}

function parseNumber(text: string, spec: FieldSpec): number | undefined {
  if (/^\d+$/.test(text)) {
    const number = Number(text);
    return number >= spec.min && number <= spec.max ? number : undefined;
  }
  const lower = text.toLowerCase();
  const index = lower.length < 3 ? -1 : (spec.names ?? []).findIndex((name) => name.startsWith(lower));
  return index < 0 ? undefined : spec.min + index;
}

function listSteps(low: number, high: number, step: number): number[] {
  const members: number[] = [];
  for (let n = low; n <= high; n += step) members.push(n);
  return members;
}

function makeFieldSet(members: ReadonlySet<number>, max: number): FieldSet {
  const from: number[] = Array.from({ length: max + 2 }, () => -1);
  for (let n = max; n >= 0; n--) from[n] = members.has(n) ? n : (from[n + 1] ?? -1);
  const below: number[] = [0];
  for (let n = 0; n <= max; n++) below.push((below[n] ?? 0) + (members.has(n) ? 1 : 0));
  return { from, below };
}

function reject(message: string): { readonly ok: false; readonly message: string } {
  return { ok: false, message };
}
