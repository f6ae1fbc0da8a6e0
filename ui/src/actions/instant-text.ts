/**
 * Instants as people type them. They are UTC everywhere, so a time without an offset is UTC, and a day alone is its
 * midnight.
 */
const shape = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{1,2}:\d{2})(:\d{2}(?:\.\d{1,3})?)?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?$/i;

/** An RFC 3339 time in UTC, or undefined for what is none. */
export function parseInstant(text: string): string | undefined {
  const found = shape.exec(text.trim());
  if (found === null) return undefined;
  const [, day = '', clock = '0:00', seconds = ':00', zone = 'Z'] = found;
  const offset = /^(z|utc)$/i.test(zone) ? 'Z' : zone.replace(/^(.\d{2}):?/, '$1:');
  const ms = Date.parse(`${day}T${clock.padStart(5, '0')}${seconds}${offset}`);
  if (Number.isNaN(ms) || !sameDay(day)) return undefined;
  return new Date(ms).toISOString();
}

/** Dates such as 2026-02-30, which `Date` would quietly move on. */
function sameDay(day: string): boolean {
  const ms = Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}

const minuteMs = 60_000;

/** To the minute, as a field shows it: `2026-01-31 00:00`. */
export function instantText(ms: number): string {
  return new Date(Math.floor(ms / minuteMs) * minuteMs).toISOString().slice(0, 16).replace('T', ' ');
}
