/** Four tenants beside a villain (`test/harness/villains.ts`): they must fire in time and restart rarely. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { removeEngineBuilds } from '../harness/engine-builds.ts';
import { type Age, latenessAimMs, Neighbourhood, type Villain } from '../harness/villains.ts';

/** Tolerance for a busy machine: 3.5 s was the worst of 54 at load 19. Without a watchdog, the four would be at least 8 s late. */
const slackMs = 2_000;
let neighbourhood: Neighbourhood;

export function testNeighbours(villains: readonly Villain[], ages: readonly Age[]): void {
  beforeAll(async () => {
    neighbourhood = await Neighbourhood.start();
  }, 120_000);
  afterAll(async () => {
    await neighbourhood?.close();
    await removeEngineBuilds();
  });

  it.each(villains.flatMap((villain) => ages.map((age) => [age, villain] as const)))(
    'tenants of %s age beside a scheduler that %s fire in time, and restart for two losses at most',
    async (age, villain) => {
      const { latenessMs, controlMs, restarts } = await neighbourhood.suffer(villain, age);
      const figures = [latenessMs, controlMs].map(Math.round);
      console.info(`${villain}, ${age}: late by ${figures[0]} ms (${figures[1]} without it), ${restarts} restarts`);
      expect(latenessMs).toBeLessThan(latenessAimMs + slackMs + 2 * controlMs);
      expect(restarts).toBeLessThanOrEqual(age === 'same' ? 3 : 2);
    },
    180_000,
  );
}
