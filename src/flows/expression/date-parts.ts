/** The parts of a moment on the wall clock of a time zone. Months and weekdays count from 0, as in CEL; 0 is Sunday. */
import { isZone, zoneOf } from '../../calendar/zone.ts';
import { brief, ExpressionError } from './values.ts';

export interface DateParts {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly weekday: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
}

/** A zone of null is UTC. */
export function dateParts(at: Date, timezone: string | null): DateParts {
  if (timezone !== null && !isZone(timezone)) throw new ExpressionError(`${brief(timezone)} is not a time zone`);
  const { offsetMs } = zoneOf(timezone).stretchAt(at.getTime());
  const wall = new Date(at.getTime() + offsetMs);
  return {
    year: wall.getUTCFullYear(),
    month: wall.getUTCMonth(),
    day: wall.getUTCDate(),
    weekday: wall.getUTCDay(),
    hour: wall.getUTCHours(),
    minute: wall.getUTCMinutes(),
    second: wall.getUTCSeconds(),
  };
}
