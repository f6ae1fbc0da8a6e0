/** Processes die at every checkpoint of tenant life and of the launcher, five times over. */
import { expect, it } from 'vitest';
import { tenantWalk } from '../tenant-walk.ts';

it('a request whose process died is completed by the same request again (I5, I6)', async () => {
  expect((await tenantWalk({ rounds: 5 })).faults).toEqual([]);
});
