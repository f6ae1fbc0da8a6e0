/** Processes die at every checkpoint, three times over, and not always at its first passage. */
import { expect, it } from 'vitest';
import { crashWalk, walked } from '../crash-walk.ts';
import { seed } from './seed.ts';

it(`a process that dies at any checkpoint loses and doubles nothing (I1–I4), CHAOS_SEED=${seed}`, async () => {
  const { faults, died } = await crashWalk({ seed, rounds: 3, passages: 4, at: walked });
  expect(faults).toEqual([]);
  expect([...died].toSorted()).toEqual(walked.toSorted());
});
