/** Formats an instant as the local time of a zone, as RFC 9557 does: 2026-03-29T03:00:00+02:00[Europe/Berlin]. */
import { zoneOf } from './zone.ts';

export function formatLocal(timezone: string | null, instantMs: number): string {
  const { offsetMs } = zoneOf(timezone).stretchAt(instantMs);
  const wall = new Date(instantMs + offsetMs).toISOString().replace(/(\.000)?Z$/, '');
  return `${wall}${formatOffset(offsetMs)}[${timezone ?? 'UTC'}]`;
}

/** Hours and minutes. Seconds follow only if they are not zero, as in some offsets before 1972. */
function formatOffset(offsetMs: number): string {
  const text = new Date(Math.abs(offsetMs)).toISOString().slice(11, 19).replace(/:00$/, '');
  return `${offsetMs < 0 ? '-' : '+'}${text}`;
}
