import { expect, test } from 'vitest';
import { cronWords, periodWords } from './schedule-words.ts';

test.each([
  [1, 'every second'],
  [60, 'every minute'],
  [900, 'every 15 minutes'],
  [5_400, 'every 1 hour 30 minutes'],
  [86_400, 'every day'],
  [604_800, 'every 7 days'],
  [1.5, 'every 1.5 seconds'],
])('a period of %d s is %s', (seconds, words) => expect(periodWords(seconds)).toBe(words));

test.each([
  ['* * * * *', 'every minute'],
  ['*/15 * * * *', 'every 15 minutes'],
  ['0 * * * *', 'every hour, on the hour'],
  ['5 */6 * * *', 'every 6 hours, 5 minutes past'],
  ['30 2 * * *', 'every day at 02:30'],
  ['0 30 2 * * *', 'every day at 02:30'],
  ['0 6,18 * * *', 'every day at 06:00 and 18:00'],
  ['0 6 * * mon-fri', 'on weekdays at 06:00'],
  ['0 6 * * 1,sun', 'on Mondays and Sundays at 06:00'],
  ['0 6 * * 7', 'on Sundays at 06:00'],
  ['0 0 1 * *', 'on day 1 of every month at 00:00'],
  ['@yearly', 'every 1 January at 00:00'],
  ['@Weekly', 'on Sundays at 00:00'],
])('%s is %s', (cron, words) => expect(cronWords(cron)).toBe(words));

test.each([
  '*/7 * * * *',
  '0 0 13 * 5',
  '0 0 L * *',
  '15 30 2 * * *',
  '1-5 * * * *',
  '0 6 * * 1#2',
  '61 6 * * *',
  'nonsense',
  '* 6 * * *',
  '0 0 1 */3 *',
])('%s is left to its own words', (cron) => expect(cronWords(cron)).toBeUndefined());
