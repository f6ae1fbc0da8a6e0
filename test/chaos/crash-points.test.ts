/** Processes die once at every other checkpoint. `npm run chaos` walks all of them several times, also at later passages. */
import { expect, it } from 'vitest';
import { crashWalk, walked } from './crash-walk.ts';

it('a process that dies at a checkpoint loses and doubles nothing (I1–I4)', { timeout: 400_000 }, async () => {
  const at = walked.filter((_, i) => i % 2 === 0);
  const { faults, died } = await crashWalk({ seed: 1, rounds: 1, passages: 1, at });
  expect(faults).toEqual([]);
  expect([...died].toSorted()).toEqual(at.toSorted());
});
