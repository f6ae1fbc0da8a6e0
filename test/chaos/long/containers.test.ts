/** 500 container tasks under many faults, and 200 containers at once. */
import { describe, expect, it } from 'vitest';
import { needs } from '../../harness/services.ts';
import { containerStorm } from '../container-storm.ts';

const nothing = { wrong: [], missing: Array(5).fill('error'), left: [], touched: [] };

describe.skipIf(!needs('docker') || !needs('busybox'))('500 container tasks', () => {
  it('all end once in effect, and leave nothing, while workers and their engine fail', {
    timeout: 900_000,
  }, async () => {
    const outcome = await containerStorm({
      runs: 500,
      faults: [
        'kill worker',
        'freeze worker',
        'stop engine',
        'kill worker',
        'hang engine',
        'kill engine',
        'freeze worker',
        'kill worker',
        'stop engine',
      ],
      workers: 3,
      places: 8,
      withinMs: 600_000,
    });
    expect(outcome).toEqual(nothing);
  });

  it('of which 200 run at once all end, although their worker is killed', { timeout: 900_000 }, async () => {
    const outcome = await containerStorm({
      runs: 300,
      faults: ['kill worker'],
      workers: 1,
      places: 200,
      withinMs: 600_000,
    });
    expect(outcome).toEqual(nothing);
  });
});
