import { expect, it } from 'vitest';
import { nextCount } from './fetching.ts';

const ofBytes = (count: number, bytes: number): { bytes: number }[] => Array.from({ length: count }, () => ({ bytes }));

it('reads more executions with one statement while they are small, and fewer as soon as they are large', () => {
  expect(nextCount(16, ofBytes(16, 2_000))).toBe(32);
  expect(nextCount(200, ofBytes(200, 2_000))).toBe(250);
  expect(nextCount(250, ofBytes(250, 1024 * 1024))).toBe(64);
  expect(nextCount(16, ofBytes(16, 16 * 1024 * 1024))).toBe(4);
  expect(nextCount(4, ofBytes(4, 100 * 1024 * 1024))).toBe(1);
});

it('goes on if none of the executions exists any more', () => expect(nextCount(16, [])).toBe(32));
