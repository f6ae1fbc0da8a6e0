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
import type { Read } from './values.ts';

/** A set of small numbers. `from[i]` is its least member that is at least i, or -1. */
export interface FieldSet {
  readonly from: readonly number[];
}

export interface CronPattern {
  readonly seconds: FieldSet;
  readonly minutes: FieldSet;
  readonly hours: FieldSet;
  readonly daysOfMonth: FieldSet;
  readonly months: FieldSet;
  /** Sunday is 0, whatever the expression's own count. */
  readonly daysOfWeek: FieldSet;
  /** null: every year. */
  readonly years: FieldSet | null;
  /** Whether a day needs only one of day-of-month and day-of-week. */
  readonly eitherDay: boolean;
  /** Whether it names its hours, rather than running through them with a wildcard or a step. */
  readonly namesHours: boolean;
}

interface FieldSpec {
  readonly label: string;
  readonly min: number;
  readonly max: number;
  /** The largest member of `*` and of an open `a/n`, where it is not `max`. */
  readonly last?: number;
  /** In order; the first is number `min`. */
  readonly names?: readonly string[];
  readonly any?: boolean;
}

const months = 'january february march april may june july august september october november december'.split(' ');
const weekdays = 'sunday monday tuesday wednesday thursday friday saturday'.split(' ');
const second: FieldSpec = { label: 'second', min: 0, max: 59 };
const minute: FieldSpec = { label: 'minute', min: 0, max: 59 };
const hour: FieldSpec = { label: 'hour', min: 0, max: 23 };
const dayOfMonth: FieldSpec = { label: 'day of the month', min: 1, max: 31, any: true };
const month: FieldSpec = { label: 'month', min: 1, max: 12, names: months };
const rustWeekday: FieldSpec = { label: 'day of the week', min: 1, max: 7, names: weekdays, any: true };
const unixWeekday: FieldSpec = { label: 'day of the week', min: 0, max: 7, last: 6, names: weekdays, any: true };
const year: FieldSpec = { label: 'year', min: 1970, max: 2100 };

const shorthands = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

const longestText = 1_000;

export function parseCron(text: string): Read<CronPattern> {
  if (text.length > longestText) return refused('is too long for a cron expression');
  const trimmed = text.trim().replaceAll(/\s*,\s*/g, ',');
  if (trimmed.startsWith('@')) {
    const meaning = shorthands.get(trimmed.toLowerCase());
    return meaning === undefined ? refused(`is not one of ${[...shorthands.keys()].join(', ')}`) : parseCron(meaning);
  }
  const fields = trimmed.split(/\s+/);
  if (fields.length === 5) return pattern(['0', ...fields], unixWeekday);
  if (fields.length === 6 || fields.length === 7) return pattern(fields, rustWeekday);
  return refused(
    'must have five fields (minute hour day month weekday), six (second first), seven (year last), or be @daily or the like',
  );
}

function pattern(fields: readonly string[], weekday: FieldSpec): Read<CronPattern> {
  const specs = [second, minute, hour, dayOfMonth, month, weekday, year];
  const sets: number[][] = [];
  for (const [i, text] of fields.entries()) {
    const spec = specs[i] ?? year;
    const members = parseField(text, spec);
    if (typeof members === 'string') return refused(members);
    sets.push(members);
  }
  const [seconds = [], minutes = [], hours = [], days = [], monthSet = [], weekdaySet = [], years] = sets;
  const unix = weekday === unixWeekday;
  const [, , hourText = '', dayText = '', , weekdayText = ''] = fields;
  return {
    ok: true,
    value: {
      seconds: fieldSet(seconds, 59),
      minutes: fieldSet(minutes, 59),
      hours: fieldSet(hours, 23),
      daysOfMonth: fieldSet(days, 31),
      months: fieldSet(monthSet, 12),
      daysOfWeek: fieldSet(
        weekdaySet.map((day) => (unix ? day % 7 : day - 1)),
        6,
      ),
      years: years === undefined || fields[6] === '*' ? null : fieldSet(years, year.max),
      eitherDay: unix && !isOpen(dayText) && !isOpen(weekdayText),
      namesHours: !/[*/]/.test(hourText) && new Set(hours).size < 24,
    },
  };
}

function isOpen(field: string): boolean {
  return field.startsWith('*') || field.startsWith('?');
}

const item = /^(\*|\?|[A-Za-z]+|\d+)(?:-([A-Za-z]+|\d+))?(?:\/(\d+))?$/;

/** The members of one field, or what is wrong with it. */
function parseField(text: string, spec: FieldSpec): number[] | string {
  const members: number[] = [];
  for (const part of text.split(',')) {
    const found = parseItem(part, spec);
    if (typeof found === 'string') return found;
    members.push(...found);
  }
  return members;
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
  if (step < 1) return `${where}, a step of nothing`;
  const low = open ? spec.min : numberOf(first, spec);
  const high = highEnd(spec, { open, first, end, stepped: stepText !== undefined });
  const range = `${spec.min} to ${spec.max}`;
  if (low === undefined || high === undefined) return `${where}; it must be ${range}${spec.names ? ', or a name' : ''}`;
  if (low > high) return `${where}, a range that runs backwards; write it as two`;
  return stepsOf(low, high, step);
}

function highEnd(
  spec: FieldSpec,
  parts: { open: boolean; first: string; end: string | undefined; stepped: boolean },
): number | undefined {
  if (parts.end !== undefined) return endOf(parts.end, spec);
  if (parts.open || parts.stepped) return Math.max(spec.last ?? spec.max, numberOf(parts.first, spec) ?? 0);
  return numberOf(parts.first, spec);
}

/** In ordinary cron Sunday ends a week as well as it begins one: `mon-sun`. */
function endOf(text: string, spec: FieldSpec): number | undefined {
  const number = numberOf(text, spec);
  return number === 0 && spec.last === 6 && text !== '0' ? 7 : number;
}

function numberOf(text: string, spec: FieldSpec): number | undefined {
  if (/^\d+$/.test(text)) {
    const number = Number(text);
    return number >= spec.min && number <= spec.max ? number : undefined;
  }
  const lower = text.toLowerCase();
  const index = lower.length < 3 ? -1 : (spec.names ?? []).findIndex((name) => name.startsWith(lower));
  return index < 0 ? undefined : spec.min + index;
}

function stepsOf(low: number, high: number, step: number): number[] {
  const members: number[] = [];
  for (let n = low; n <= high; n += step) members.push(n);
  return members;
}

function fieldSet(members: readonly number[], max: number): FieldSet {
  const from: number[] = Array.from({ length: max + 2 }, () => -1);
  const set = new Set(members);
  for (let n = max; n >= 0; n--) from[n] = set.has(n) ? n : (from[n + 1] ?? -1);
  return { from };
}

function refused(message: string): { readonly ok: false; readonly message: string } {
  return { ok: false, message };
}
