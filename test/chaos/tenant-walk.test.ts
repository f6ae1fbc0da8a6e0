/** Processes die at every checkpoint of tenant life and of the launcher; `npm run chaos` repeats it several times. */
import { expect, it } from 'vitest';
import { checkpoints } from '../../src/app/checkpoints.ts';
import { tenantWalk } from './tenant-walk.ts';

it('a request whose process died is completed by the same request again (I5, I6)', { timeout: 300_000 }, async () => {
  const { faults, died } = await tenantWalk({ rounds: 1 });
  expect(faults).toEqual([]);
  const { life, launcher } = checkpoints;
  expect([...died].toSorted()).toEqual([...life, ...launcher].toSorted());
});
