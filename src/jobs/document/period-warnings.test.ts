import { expect, test } from 'vitest';
import { parseJob } from './parse-job.ts';

function warningsOf(period: string): string[] {
  const triggers = [{ name: 't', start: '2026-01-30T00:00:00Z', period }];
  const parsed = parseJob({ project: 'p', name: 'j', triggers, tasks: [{ name: 'a', depends: ['trigger/t'] }] });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.warnings.map(({ path, message }) => `${path} ${message}`);
}

test.each(['1 month', '1M', '2months', '1d 1M'])('a period of months is warned of: %s', (period) => {
  expect(warningsOf(period)).toEqual([
    expect.stringMatching(/^triggers\[0\]\.period a month is 30\.44 days.*cron/) as unknown,
  ]);
});

test.each(['1y', '2 years', '1yr'])('a period of years is warned of: %s', (period) => {
  expect(warningsOf(period)).toEqual([expect.stringContaining('a year is 365.25 days') as unknown]);
});

test.each(['1m', '30minutes', '1d', '4 weeks', 'PT1M', '90 min', '1000ms'])(
  'any other period is not warned of: %s',
  (period) => {
    expect(warningsOf(period)).toEqual([]);
  },
);
