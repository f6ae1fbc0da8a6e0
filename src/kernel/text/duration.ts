/**
 * Durations as people write them, to whole milliseconds and back.
 *
 * Two notations are accepted: that of the Rust crate humantime (`1d`, `1h 30m`, `30minutes`, `2 days`, `1.5h`; a month is
 * 30.44 days, a year 365.25), and ISO 8601 (`PT1H30M`, `P1D`, `P2W`). ISO years and months have no fixed length and are
 * rejected. Durations that are no whole, safe integer of milliseconds are rejected as well. Nothing here throws: for a text
 * that is not a duration the result has a message with the reason.
 */

export type DurationResult =
  | { readonly ok: true; readonly ms: number }
  | { readonly ok: false; readonly message: string };

export const dayMs = 86_400_000;

const second = 1_000_000_000n;
const day = 86_400n * second;

/** Nanoseconds by unit; units are case-sensitive (`m` is a minute, `M` a month). */
const unitGroups: readonly (readonly [bigint, readonly string[]])[] = [
  [1n, ['ns', 'nsec', 'nanos']],
  [1_000n, ['us', 'usec', 'µs', 'μs']],
  [1_000_000n, ['ms', 'msec', 'millis']],
  [second, ['s', 'sec', 'secs', 'second', 'seconds']],
  [60n * second, ['m', 'min', 'mins', 'minute', 'minutes']],
  [3_600n * second, ['h', 'hr', 'hrs', 'hour', 'hours']],
  [day, ['d', 'day', 'days']],
  [7n * day, ['w', 'wk', 'wks', 'week', 'weeks']],
  [2_630_016n * second, ['M', 'month', 'months']],
  [31_557_600n * second, ['y', 'yr', 'yrs', 'year', 'years']],
];
const units = new Map(unitGroups.flatMap(([nanos, names]) => names.map((name) => [name, nanos] as const)));
const isoUnits = new Map([
  ['W', 7n * day],
  ['D', day],
  ['TH', 3_600n * second],
  ['TM', 60n * second],
  ['TS', second],
]);

const longestText = 200;
const fractionDigits = 9;
/** Sums are kept in billionths of a nanosecond, so that nine decimals of any unit are exact. */
const scale = 10n ** BigInt(fractionDigits);
const perMs = 1_000_000n * scale;

/** `signed`: the text may begin with `-`. */
export function parseDuration(text: string, options: { readonly signed?: boolean } = {}): DurationResult {
  if (text.length > longestText) return reject('is too long for a duration');
  const negative = text.startsWith('-');
  if (negative && options.signed !== true) return reject('must not be negative');
  const rest = negative ? text.slice(1) : text;
  if (rest.trim() === '') return reject('is empty; write a duration such as 30s, 1h 30m or PT1H30M');
  const sum = rest.startsWith('P') ? sumIso(rest) : sumHuman(rest);
  if (typeof sum === 'string') return reject(sum);
  if (sum % perMs !== 0n) return reject('is finer than a millisecond');
  const ms = sum / perMs;
  if (ms > BigInt(Number.MAX_SAFE_INTEGER)) return reject('is too long');
  return { ok: true, ms: negative && ms > 0n ? -Number(ms) : Number(ms) };
}

function reject(message: string): DurationResult {
  return { ok: false, message };
}

const span = /\s*(\d[\d\s]*)(?:\.(\d+))?\s*([A-Za-zµμ]*)\s*/y;

/** The sum of the spans of a humantime text, or a message about its fault. */
function sumHuman(text: string): bigint | string {
  if (/^0+$/.test(text)) return 0n;
  let sum = 0n;
  for (span.lastIndex = 0; span.lastIndex < text.length; ) {
    const at = span.lastIndex;
    const [, whole, fraction = '', unit] = span.exec(text) ?? [];
    if (whole === undefined) return `has ${quoted(text.slice(at))} where a number is expected; write it like 1h 30m`;
    const number = whole.replaceAll(/\s/g, '');
    if (unit === undefined || unit === '')
      return `has no unit after ${number}; write ${number}s, ${number}m, ${number}h…`;
    const nanos = units.get(unit);
    if (nanos === undefined) return `has the unknown unit ${quoted(unit)}; known are ms, s, m, h, d, w, M (month), y`;
    if (fraction.length > fractionDigits) return 'is finer than a millisecond';
    sum += scaled(number, fraction, nanos);
  }
  return sum;
}

const iso = /^P(\d.*?)?(?:T(\d.*))?$/;
const isoShape = /^(?:\d+(?:[.,]\d+)?[A-Z])+$/;
const isoPart = /(\d+)(?:[.,](\d+))?([A-Z])/g;
const isoOrder = ['Y', 'M', 'W', 'D', 'TH', 'TM', 'TS'];

function sumIso(text: string): bigint | string {
  const [, date = '', time = ''] = iso.exec(text) ?? [];
  const parts = [...isoParts(date, ''), ...isoParts(time, 'T')];
  const written = `P${date}${time === '' ? '' : `T${time}`}`;
  if (written !== text || parts.length === 0 || !inOrder(parts)) {
    return 'is not an ISO 8601 duration; write it like PT1H30M, P1D or P2W';
  }
  if (parts.some(({ unit }) => unit === 'Y' || unit === 'M')) {
    return 'has years or months, whose length depends on the calendar; write days (P30D, P365D) or use cron';
  }
  if (parts.some(({ fraction }) => fraction.length > fractionDigits)) return 'is finer than a millisecond';
  return parts.reduce((sum, { whole, fraction, unit }) => sum + scaled(whole, fraction, isoUnits.get(unit) ?? 0n), 0n);
}

interface IsoPart {
  readonly whole: string;
  readonly fraction: string;
  readonly unit: string;
}

function isoParts(text: string, prefix: string): IsoPart[] {
  if (!isoShape.test(text)) return [];
  return Array.from(text.matchAll(isoPart), ([, whole = '', fraction = '', unit = '']) => {
    return { whole, fraction, unit: prefix + unit };
  });
}

/** Whether each unit occurs at most once, larger ones first, and only the last has a fraction. */
function inOrder(parts: readonly IsoPart[]): boolean {
  const ranks = parts.map(({ unit }) => isoOrder.indexOf(unit));
  const ascending = ranks.every((rank, i) => rank > (ranks[i - 1] ?? -1));
  return ascending && parts.slice(0, -1).every(({ fraction }) => fraction === '');
}

function scaled(whole: string, fraction: string, nanos: bigint): bigint {
  return BigInt(whole + fraction.padEnd(fractionDigits, '0')) * nanos;
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 20 ? `${text.slice(0, 20)}…` : text);
}

const formatUnits: readonly (readonly [string, number])[] = [
  ['d', dayMs],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
];

/** Formats in humantime's notation, from days down: `1d 2h 30m`. `parseDuration` reads it back to the same number. */
export function formatDuration(ms: number): string {
  let left = Math.abs(Math.trunc(ms));
  const parts: string[] = [];
  for (const [unit, size] of formatUnits) {
    const count = Math.floor(left / size);
    if (count > 0) parts.push(`${count}${unit}`);
    left -= count * size;
  }
  return parts.length === 0 ? '0s' : `${ms < 0 ? '-' : ''}${parts.join(' ')}`;
}
