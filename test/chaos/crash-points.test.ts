/** Death at every other checkpoint once; `npm run chaos` has all of them, several times, and not always at the first passage. */
import { expect, it } from 'vitest';
import { crashWalk, walked } from './crash-walk.ts';

it('whoever dies at a checkpoint loses and doubles nothing (I1–I4)', { timeout: 400_000 }, async () => {
  const at = walked.filter((_, i) => i % 2 === 0);
  const { faults, died } = await crashWalk({ seed: 1, rounds: 1, passages: 1, at });
  expect(faults).toEqual([]);
  expect([...died].toSorted()).toEqual(at.toSorted());
});
