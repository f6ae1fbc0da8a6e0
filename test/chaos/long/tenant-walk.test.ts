/** Death at every checkpoint of tenant life and of the launcher, over and over. */
import { expect, it } from 'vitest';
import { tenantWalk } from '../tenant-walk.ts';

it('whatever is cut short is completed by the same call again (I5, I6)', async () => {
  expect((await tenantWalk({ rounds: 5 })).faults).toEqual([]);
});
