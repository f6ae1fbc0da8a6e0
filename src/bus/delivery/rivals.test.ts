/**
 * Several couriers on one tenant, of which some die or freeze while subscriptions change and receivers fail. Nothing may be
 * missing (I7), each strand is in order, and an event always travels in the same batch. Nothing is left over (I8).
 */
import { describe, expect, it } from 'vitest';
import { type Rivalry, runRivals } from '../../../test/bus/rivals.ts';

describe('several couriers', () => {
  const played: Rivalry[] = [];

  it.each([1, 2, 3])('deliver everything in order, whoever dies or freezes (seed %i)', async (seed) => {
    const rivalry = await runRivals(seed);
    played.push(rivalry);
    expect(rivalry.faults).toEqual([]);
  });

  it('were killed and frozen, met changed subscriptions, lost answers, and had writes under lost leases refused', () => {
    for (const counter of ['kills', 'freezes', 'changes', 'pauses', 'moves', 'lostAnswers', 'refused'] as const)
      expect(
        played.reduce((sum, rivalry) => sum + rivalry[counter], 0),
        counter,
      ).toBeGreaterThan(0);
  });
});
