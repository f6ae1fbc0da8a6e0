/** Four tenants beside a villain (`test/harness/villains.ts`): they must fire in time and restart rarely. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { removeEngineBuilds } from '../harness/engine-builds.ts';
import { latenessAimMs, Neighbourhood, type Villain } from '../harness/villains.ts';

/** Tolerance for a busy machine. Without a standby host or a watchdog, the four would be at least 8 s late. */
const slackMs = 3_000;
let neighbourhood: Neighbourhood;

export function testNeighbours(villains: readonly Villain[]): void {
  beforeAll(async () => {
    neighbourhood = await Neighbourhood.start();
  }, 120_000);
  afterAll(async () => {
    await neighbourhood?.close();
    await removeEngineBuilds();
  });

  it.each(villains)(
    'four tenants beside a scheduler that %s fire in time, and restart once for each lost host',
    async (villain) => {
      const { latenessMs, controlMs, losses, restarts } = await neighbourhood.suffer(villain);
      const figures = [latenessMs, controlMs].map(Math.round);
      console.info(
        `${villain}: late by ${figures[0]} ms (${figures[1]} without it), ${restarts} restarts, ${losses} losses`,
      );
      expect(latenessMs).toBeLessThan(latenessAimMs + slackMs + 2 * controlMs);
      expect(restarts).toBeLessThanOrEqual(losses);
      expect(losses).toBeLessThanOrEqual(2);
    },
    180_000,
  );
}
