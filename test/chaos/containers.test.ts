/** A short storm of faults on containers; `long/containers.test.ts` has more of each. */
import { describe, expect, it } from 'vitest';
import { needs } from '../harness/services.ts';
import { containerStorm } from './container-storm.ts';

describe.skipIf(!needs('docker') || !needs('busybox'))('container tasks', () => {
  it('all end once in effect, and leave nothing, while workers and their engine fail', {
    timeout: 180_000,
  }, async () => {
    const outcome = await containerStorm({
      runs: 40,
      faults: ['kill worker', 'freeze worker', 'stop engine'],
      workers: 2,
      places: 4,
      withinMs: 120_000,
    });
    expect(outcome).toEqual({ wrong: [], missing: Array(5).fill('error'), left: [], touched: [] });
  });
});
