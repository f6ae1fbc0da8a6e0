/** The short storm over tenants. `npm run chaos` has a hundred kills. */
import { expect, it } from 'vitest';
import { tenantStormIn } from './tenant-storm.ts';

it('after kills of launchers and hosts every tenant is as requested (I5, I6)', { timeout: 300_000 }, async () => {
  expect(await tenantStormIn({ seed: 1, kills: 8, tenants: 6 })).toEqual([]);
});
