/** Parses instants as people type them. A time without an offset is UTC, and a date alone is its midnight. */
const shape = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{1,2}:\d{2})(:\d{2}(?:\.\d{1,3})?)?)?\s*(Z|UTC|[+-]\d{2}:?\d{2})?$/i;

/** Returns an RFC 3339 time in UTC, or undefined if the text is not a valid time. */
export function parseInstant(text: string): string | undefined {
  const found = shape.exec(text.trim());
  if (found === null) return undefined;
  const [, day = '', clock = '0:00', seconds = ':00', zone = 'Z'] = found;
  const offset = /^(z|utc)$/i.test(zone) ? 'Z' : zone.replace(/^(.\d{2}):?/, '$1:');
  const ms = Date.parse(`${day}T${clock.padStart(5, '0')}${seconds}${offset}`);
  if (Number.isNaN(ms) || !isCalendarDay(day)) return undefined;
  return new Date(ms).toISOString();
}

/** Rejects dates such as 2026-02-30, which `Date` would silently move into March. */
function isCalendarDay(day: string): boolean {
  const ms = Date.parse(`${day}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}

const minuteMs = 60_000;

/** Formats an instant to the minute, as a field shows it: `2026-01-31 00:00`. */
export function instantText(ms: number): string {
  return new Date(Math.floor(ms / minuteMs) * minuteMs).toISOString().slice(0, 16).replace('T', ' ');
}
