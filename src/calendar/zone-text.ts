/** What a clock in a zone shows, written as RFC 9557 does: 2026-03-29T03:00:00+02:00[Europe/Berlin]. */
import { zoneOf } from './zone.ts';

export function localText(timezone: string | null, instantMs: number): string {
  const { offsetMs } = zoneOf(timezone).stretchAt(instantMs);
  const wall = new Date(instantMs + offsetMs).toISOString().replace(/(\.000)?Z$/, '');
  return `${wall}${offsetText(offsetMs)}[${timezone ?? 'UTC'}]`;
}

/** To the minute; the odd seconds of former centuries are told where there are any. */
function offsetText(offsetMs: number): string {
  const text = new Date(Math.abs(offsetMs)).toISOString().slice(11, 19).replace(/:00$/, '');
  return `${offsetMs < 0 ? '-' : '+'}${text}`;
}
