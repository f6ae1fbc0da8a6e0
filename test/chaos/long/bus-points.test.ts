/** Processes die at every checkpoint of the bus, twice over, and not always at its first passage, between other blows. */
import { expect, it } from 'vitest';
import { BusWalk, busWalked } from '../bus-walk.ts';
import { seed } from './seed.ts';

it(`a bus whose processes die, freeze and lose PostgreSQL delivers everything (I7, I8), CHAOS_SEED=${seed}`, async () => {
  const walk = await BusWalk.start({ seed, passages: 3 });
  try {
    for (let round = 0; round < 2; round++) {
      await walk.dieAt(busWalked);
      expect(walk.faults).toEqual([]);
      await walk.freezeCourier();
      await walk.installation.terminateBackends('millrace%', 0.5);
      await walk.goOn();
      await walk.installation.crashDatabase();
      await walk.goOn();
      await walk.installation.restartDatabase();
      await walk.goOn();
    }
    expect([...walk.died].toSorted()).toEqual([...busWalked].toSorted());
    expect(await walk.finish()).toEqual([]);
  } finally {
    await walk.close();
  }
});
