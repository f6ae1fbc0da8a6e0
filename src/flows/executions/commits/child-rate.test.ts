import type { Pool } from 'pg';
import { expect, it } from 'vitest';
import { childTimes } from './child-rate.ts';

/** Only its identity counts. */
const newPool = (): Pool => ({}) as Pool;

it('A thousand children begin at once, and further ones a thousand a second.', () => {
  const times = childTimes(newPool(), { nowMs: 1_000_000, runningMs: 5_000 }, 3_000);
  expect(times.slice(0, 1_000).every((time) => time === 1_000_000)).toBe(true);
  expect(times.at(-1)).toBe(1_002_000);
});

it('Children begin at once although the clock was an hour ahead before.', () => {
  const pool = newPool();
  childTimes(pool, { nowMs: 1_000_000 + 3_600_000, runningMs: 5_000 }, 2_000);
  expect(childTimes(pool, { nowMs: 1_000_000, runningMs: 10_000 }, 1)).toEqual([1_000_000]);
});
