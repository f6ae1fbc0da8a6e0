import { expect, it } from 'vitest';
import { maxClaimBytes } from '../../contract/engine.ts';
import type { ClaimedRun } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { LeftRuns } from './left-runs.ts';

function runWith(params: Record<string, unknown>): ClaimedRun {
  const ids = { tenant: newId(), run: newId(), task: newId(), lease: 1, version: 1, attempt: 1 };
  const texts = { tenant_name: 't', engine: 'e', instant: '2030-01-31T00:00:00Z', credential: '' };
  return { ...ids, ...texts, priority: 'normal', params };
}

it('a poll gets as many of the runs left for its worker as it has places', () => {
  const left = new LeftRuns();
  left.put('w', [runWith({}), runWith({}), runWith({})], 0);
  expect(left.take('w', 2)).toHaveLength(2);
  expect(left.take('w', 2)).toHaveLength(1);
  expect(left.count('w')).toBe(0);
});

it('an answer holds no more params than a claim, and one run at least', () => {
  const left = new LeftRuns();
  const quarter = { x: 'x'.repeat(maxClaimBytes / 4) };
  left.put('w', [...Array.from({ length: 6 }, () => runWith(quarter)), runWith({ x: 'x'.repeat(maxClaimBytes) })], 0);
  expect([left.take('w', 100), left.take('w', 100), left.take('w', 100)].map((runs) => runs.length)).toEqual([3, 3, 1]);
});
