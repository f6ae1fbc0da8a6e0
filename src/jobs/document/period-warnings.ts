/**
 * Warns of periods in months or years. These units have a fixed length (30.44 and 365.25 days, as in Waterwheel), so instants
 * move through the calendar: `1 month` after 30 January is 1 March, and February has no instant.
 */
import type { Fault } from '../../errors.ts';
import type { TriggerDocument } from './document.ts';

const calendarUnit = /[\d\s](M|months?|y|yrs?|years?)(?![A-Za-z])/;

export function periodWarnings(triggers: readonly TriggerDocument[]): Fault[] {
  return triggers.flatMap(({ period }, i) => {
    // in an ISO 8601 duration M means minutes; months are rejected there
    if (typeof period !== 'string' || period.startsWith('P')) return [];
    const unit = calendarUnit.exec(period)?.[1];
    if (unit === undefined) return [];
    const [days, cron] = /^[Mm]/.test(unit)
      ? ['a month is 30.44 days', '0 0 1 * *']
      : ['a year is 365.25 days', '0 0 1 1 *'];
    const message = `${days} here, so its instants move through the calendar, and may skip a month; for dates write cron, such as "${cron}"`;
    return [{ path: `triggers[${i}].period`, message }];
  });
}
