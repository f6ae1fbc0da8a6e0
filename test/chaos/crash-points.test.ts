/** Death at every checkpoint once; `npm run chaos` does it several times, and not always at the first passage. */
import { expect, it } from 'vitest';
import { checkpoints } from '../../src/kernel/checkpoint.ts';
import { crashWalk } from './crash-walk.ts';

it('whoever dies at any checkpoint loses and doubles nothing (I1–I4)', { timeout: 400_000 }, async () => {
  const { faults, died } = await crashWalk({ seed: 1, rounds: 1, passages: 1 });
  expect(faults).toEqual([]);
  expect([...died].toSorted()).toEqual(Object.values(checkpoints).flat().toSorted());
});
