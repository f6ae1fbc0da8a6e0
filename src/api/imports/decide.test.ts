import { expect, it } from 'vitest';
import { type Decision, decide, type KnownJob } from './decide.ts';

const here: KnownJob = { isDeleted: false, isActive: false, version: 1, imported: { version: 1, digest: 'a' } };
const summary = (decision: Decision): string =>
  decision.act === 'write' ? (decision.document ? 'write' : 'write without document') : decision.outcome;

it.each<[string, KnownJob | undefined, digest: string, plain: string, overwriting: string]>([
  ['a new job', undefined, 'a', 'write', 'write'],
  ['a job that an import wrote', here, 'a', 'write', 'write'],
  ['a job whose source has changed', here, 'b', 'write', 'write'],
  ['a job edited here', { ...here, version: 2 }, 'a', 'write without document', 'write'],
  ['a job edited on both sides', { ...here, version: 2 }, 'b', 'conflict', 'write'],
  ['a job that was not imported', { ...here, imported: undefined }, 'a', 'conflict', 'write'],
  ['a deleted job', { ...here, isDeleted: true }, 'a', 'conflict', 'write'],
  ['an active job', { ...here, isActive: true }, 'a', 'unchanged', 'unchanged'],
  ['an active job edited here', { ...here, isActive: true, version: 2 }, 'a', 'unchanged', 'unchanged'],
  ['an active job whose source has changed', { ...here, isActive: true }, 'b', 'conflict', 'conflict'],
  [
    'an active job that was not imported',
    { ...here, isActive: true, imported: undefined },
    'a',
    'conflict',
    'conflict',
  ],
])('%s is decided with and without --overwrite', (_, known, digest, plain, overwriting) => {
  expect(summary(decide(known, digest, false))).toBe(plain);
  expect(summary(decide(known, digest, true))).toBe(overwriting);
});

it('every decision to leave a difference names a reason', () => {
  for (const known of [
    { ...here, version: 2 },
    { ...here, imported: undefined },
    { ...here, isDeleted: true },
    { ...here, isActive: true },
  ]) {
    const decision = decide(known, 'b', false);
    expect(decision).toMatchObject({
      act: 'leave',
      outcome: 'conflict',
      reason: expect.stringMatching(/here/) as unknown,
    });
  }
});
