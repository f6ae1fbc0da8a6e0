/** A hundred kills of launchers and hosts while tenants are created, upgraded, stopped, started and dropped. */
import { expect, it } from 'vitest';
import { tenantStormIn } from '../tenant-storm.ts';
import { seed } from './seed.ts';

it(`after a hundred kills every tenant is as requested (I5, I6), CHAOS_SEED=${seed}`, async () => {
  const startedAt = performance.now();
  expect(await tenantStormIn({ seed, kills: 100, tenants: 12 })).toEqual([]);
  console.log(`100 kills in ${Math.round((performance.now() - startedAt) / 1_000)} s`);
});
