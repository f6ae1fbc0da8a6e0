/**
 * Parses the short texts inside a document: spans of time, instants, `KEY=VALUE`.
 *
 * Each reader returns the value, or a message to be appended to the name of the field: "must not be negative".
 */
import { parseDuration } from '../kernel/text/duration.ts';

export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly message: string };

/** A thousand years. Added to an instant up to the year 9999, it stays within a JavaScript Date and a timestamptz. */
export const longestSpanMs = 31_557_600_000_000;

export interface SpanLimits {
  readonly leastMs?: number;
  /** May begin with `-`, and may be zero. */
  readonly signed?: boolean;
}

export function readSpan(text: string, limits: SpanLimits = {}): Read<number> {
  const signed = limits.signed === true;
  const parsed = parseDuration(text, { signed });
  if (!parsed.ok) return parsed;
  if (!signed && parsed.ms === 0) return reject('must be longer than zero');
  if (!signed && parsed.ms < (limits.leastMs ?? 1)) return reject(`must be at least ${(limits.leastMs ?? 1) / 1000}s`);
  if (Math.abs(parsed.ms) > longestSpanMs) return reject('must not be longer than 1000 years');
  return { ok: true, value: parsed.ms };
}

const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;
const hint = 'write it like 2030-01-31T12:00:00Z or 2030-01-31T12:00:00+02:00';
const earliestMs = 0;
const latestMs = Date.UTC(10_000, 0, 1) - 1;

/** Parses an RFC 3339 timestamp with an offset to milliseconds since the epoch. Years 1970 to 9999. */
export function readInstant(text: string): Read<number> {
  const match = rfc3339.exec(text);
  if (match === null) return reject(`is not an RFC 3339 timestamp with an offset; ${hint}`);
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHour, offsetMinute] = match;
  const [h, m, s] = [Number(hour), Number(minute), Number(second)];
  const wallMs = Date.UTC(Number(year), Number(month) - 1, Number(day), h, m, s);
  const iso = new Date(wallMs).toISOString();
  if (iso.slice(0, 19) !== `${year}-${month}-${day}T${hour}:${minute}:${second}`) {
    return reject('names a day or time that does not exist');
  }
  if (Number(offsetHour ?? 0) > 23 || Number(offsetMinute ?? 0) > 59) return reject('has an offset beyond 23:59');
  if (/[1-9]/.test(fraction.slice(3))) return reject('is finer than a millisecond');
  const offsetMs = (Number(offsetHour ?? 0) * 60 + Number(offsetMinute ?? 0)) * 60_000 * (sign === '-' ? -1 : 1);
  const value = wallMs + Number(fraction.slice(0, 3).padEnd(3, '0')) - offsetMs;
  if (value < earliestMs || value > latestMs) return reject('must lie in the years 1970 to 9999');
  return { ok: true, value };
}

/** Parses the `KEY=VALUE` of an environment list. The value may be empty, and may contain further `=`. */
export function readEnvLine(text: string): Read<{ readonly name: string; readonly value: string }> {
  const at = text.indexOf('=');
  if (at < 0) return reject('must be KEY=VALUE');
  if (at === 0) return reject('must have a name before the =');
  return { ok: true, value: { name: text.slice(0, at), value: text.slice(at + 1) } };
}

/** Returns a value that the validator has already accepted. */
export function unwrapRead<T>(read: Read<T>): T {
  if (read.ok) return read.value;
  throw new Error(`a checked document holds a value that ${read.message}`);
}

function reject(message: string): { readonly ok: false; readonly message: string } {
  return { ok: false, message };
}

/** Parses a size such as `512MiB`. As for Docker and Kubernetes, `m` and `Mi` mean the same. */
export function readBytes(text: string, { min = 1 }: { readonly min?: number } = {}): Read<number> {
  const match = /^(\d{1,15})(?:([kmg])|([KMG]i)B?)$/.exec(text);
  if (match === null) return reject('must be a whole number with a unit: KiB, MiB or GiB');
  const [, count, short = '', long = ''] = match;
  const bytes = Number(count) * 1024 ** ('kmg'.indexOf(short || long.slice(0, 1).toLowerCase()) + 1);
  if (bytes > Number.MAX_SAFE_INTEGER) return reject('is too large');
  if (bytes < min) return reject(`must be at least ${min / 1024 ** 2}MiB`);
  return { ok: true, value: bytes };
}
