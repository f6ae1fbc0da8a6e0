/** Errands under concurrent processes: no deadlock, nothing lost, whatever connection ends between two statements (I8). */
import { describe, expect, it } from 'vitest';
import { changeFunction } from '../simulation/mutations.ts';
import { runStorm } from './errand-storm.ts';

describe('several processes on the same errands', () => {
  it.each([1, 2, 3])('neither deadlock nor lose one (seed %i)', async (seed) => {
    const { faults, taken } = await runStorm({ seed });
    expect(faults).toEqual([]);
    expect(taken).toBeGreaterThan(50);
  });

  it.each([1, 2])('lose none when connections end between or during statements (seed %i)', async (seed) => {
    const { faults, broken } = await runStorm({ seed, isTerminating: true });
    expect(faults).toEqual([]);
    expect(broken).toBeGreaterThan(0);
  });

  it('would lose one if an ack removed an errand that was pushed meanwhile', async () => {
    const { breakRule } = changeFunction('an ack removes everything', [
      'ack_errands',
      'delete from errand where ctid = any (v_held.spots) and not again',
      'delete from errand where ctid = any (v_held.spots)',
    ]);
    const storms = [];
    for (const seed of [1, 2, 3]) storms.push(await runStorm({ seed, breakRule }));
    expect(storms.flatMap(({ faults }) => faults).join()).toContain('an errand is lost');
  });
});
