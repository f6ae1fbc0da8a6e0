/**
 * Warns of periods in months or years. They have one length (30.44 and 365.25 days, as in Waterwheel), so instants move
 * through the calendar: `1 month` from 30 January leads to 1 March, and February has none.
 */
import type { Fault } from '../../errors.ts';
import type { TriggerDocument } from './document.ts';

const calendarUnit = /[\d\s](M|months?|y|yrs?|years?)(?![A-Za-z])/;

export function periodWarnings(triggers: readonly TriggerDocument[]): Fault[] {
  return triggers.flatMap(({ period }, i) => {
    // ISO 8601 writes minutes with an M, and its months are refused
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
