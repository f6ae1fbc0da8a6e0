/**
 * Flows of every kind, whose processes die at every checkpoint, twice over, and not always at its first passage, between other blows;
 * and 2,000 executions while PostgreSQL restarts.
 */
import { expect, it } from 'vitest';
import { FlowWalk, flowWalked } from '../flows/walk.ts';
import { lightMixture } from '../flows/workload.ts';
import { seed } from './seed.ts';

it(`executions whose processes die, freeze and lose PostgreSQL lose and double nothing (I9, I10), CHAOS_SEED=${seed}`, async () => {
  const walk = await FlowWalk.start({ seed, atOnce: 300, passages: 5 });
  try {
    for (let round = 0; round < 2; round++) {
      await walk.dieAt(flowWalked);
      expect(walk.faults).toEqual([]);
      await walk.freeze();
      await walk.loseConnections();
      await walk.restartDatabase();
    }
    expect([...walk.died].toSorted()).toEqual([...flowWalked].toSorted());
    expect(await walk.finish()).toEqual([]);
  } finally {
    await walk.close();
  }
});

it(`2,000 executions go on after PostgreSQL was restarted and connections were lost, CHAOS_SEED=${seed}`, async () => {
  const walk = await FlowWalk.start({ seed, atOnce: 2_000, passages: 1, mixture: lightMixture });
  try {
    await walk.busy(1_500);
    for (let round = 0; round < 3; round++) {
      await walk.restartDatabase();
      await walk.loseConnections();
    }
    expect(await walk.finish()).toEqual([]);
  } finally {
    await walk.close();
  }
});
