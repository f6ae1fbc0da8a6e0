/** Four tenants beside a villain (`test/harness/villains.ts`): how late they fire, and how often they restart. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeEngineBuilds } from '../harness/engine-builds.ts';
import { latenessAimMs, Neighbourhood, type Villain } from '../harness/villains.ts';

/** For a busy machine. Without a host that stands by, or a watchdog, the four are late by 8 s at least. */
const slackMs = 3_000;
let neighbourhood: Neighbourhood;

export function describeNeighbours(villains: readonly Villain[]): void {
  beforeAll(async () => {
    neighbourhood = await Neighbourhood.start();
  }, 120_000);
  afterAll(async () => {
    await neighbourhood?.close();
    await removeEngineBuilds();
  });

  describe('Four tenants beside a scheduler', () => {
    it.each(villains)(
      'that %s fire in time, and restart once for each host that is lost',
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
  });
}
