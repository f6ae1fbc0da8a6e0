/** Death at every checkpoint of every processor, desk and worker: kill there, start again, nothing is lost or doubled. */
import { expect, it } from 'vitest';
import { checkpoints } from '../../src/kernel/checkpoint.ts';
import { crashWalk } from './crash-walk.ts';

it('a process that dies at any checkpoint loses nothing and doubles nothing (I1–I4)', {
  timeout: 600_000,
}, async () => {
  const { faults, died } = await crashWalk({ seed: 1, rounds: 1, passages: 1 });
  expect(faults).toEqual([]);
  expect([...died].toSorted()).toEqual(Object.values(checkpoints).flat().toSorted());
});
