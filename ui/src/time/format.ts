/** Formats times, spans and sizes. Instants are shown in UTC, as everywhere else. */

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** `812ms`, `4.2s`, `1m 05s`, `2h 03m`, `3d 4h`. A clock that is a little off never shows a span below zero. */
export function formatSpan(ms: number): string {
  const span = Math.max(0, ms);
  if (span < second) return `${Math.round(span)}ms`;
  if (span < 10 * second) return `${(Math.floor(span / 100) / 10).toFixed(1)}s`;
  if (span < minute) return `${Math.floor(span / second)}s`;
  if (span < hour) return `${Math.floor(span / minute)}m ${pad(Math.floor((span % minute) / second))}s`;
  if (span < day) return `${Math.floor(span / hour)}h ${pad(Math.floor((span % hour) / minute))}m`;
  return `${Math.floor(span / day)}d ${Math.floor((span % day) / hour)}h`;
}

/** `just now`, `40s ago`, `3m ago`, `5h ago`, `2d ago`; beyond thirty days the date. */
export function formatAge(at: string, now: number): string {
  const age = now - Date.parse(at);
  if (age < 5 * second) return 'just now';
  if (age < minute) return `${Math.floor(age / second)}s ago`;
  if (age < hour) return `${Math.floor(age / minute)}m ago`;
  if (age < day) return `${Math.floor(age / hour)}h ago`;
  return age < 30 * day ? `${Math.floor(age / day)}d ago` : at.slice(0, 10);
}

/** `in 40s`, `in 3m`, `in 5h`, `in 2d`; what has passed is `now`. */
export function formatDue(at: string, now: number): string {
  const left = Date.parse(at) - now;
  if (left <= 0) return 'now';
  if (left < minute) return `in ${Math.ceil(left / second)}s`;
  if (left < hour) return `in ${Math.floor(left / minute)}m`;
  return left < day ? `in ${Math.floor(left / hour)}h` : `in ${Math.floor(left / day)}d`;
}

/** `2026-01-31 00:00Z`, with seconds and fractions only if there are any. Text that is not a time stays as it is. */
export function formatInstant(at: string): string {
  if (Number.isNaN(Date.parse(at))) return at;
  const iso = new Date(at).toISOString();
  return `${iso.slice(0, 10)} ${iso.slice(11).replace(/(:00)?\.000Z$/, 'Z')}`;
}

export function formatLocal(at: string): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });
}

/** `812 B`, `4.2 MB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const amount = bytes / 1000 ** power;
  return `${power > 0 && amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${units[power]}`;
}

function pad(n: number): string {
  return String(n).padStart(2, '0');
}
