/** Errands under concurrent processes: no deadlock, nothing lost, whatever connection ends between two statements (I8). */
import { describe, expect, it } from 'vitest';
import { changeFunction } from '../simulation/mutations.ts';
import { runStorm } from './errand-storm.ts';

describe('several processes on the same errands', () => {
  it.each([1, 2, 3])('neither deadlock nor lose one (seed %i)', async (seed) => {
    const { faults, taken, unanswered } = await runStorm({ seed });
    expect(faults).toEqual([]);
    expect(unanswered).toBeGreaterThan(0);
    expect(taken).toBeGreaterThan(50);
  });

  it.each([1, 2])('lose none when connections end between or during statements (seed %i)', async (seed) => {
    const { faults, broken } = await runStorm({ seed, isTerminating: true });
    expect(faults).toEqual([]);
    expect(broken).toBeGreaterThan(0);
  });

  it.each([
    [
      'lose one if an ack removed an errand that was pushed meanwhile',
      'an errand is lost',
      changeFunction('an ack removes everything', [
        'ack_errands',
        "and e.state = 'r' and not e.again and e.id <@ v_ids",
        "and e.state = 'r' and e.id <@ v_ids",
      ]),
    ],
    [
      'end the errands of others if a write needed no lease',
      'had an effect under a lost lease',
      changeFunction('a write needs no lease', [
        'lock_errands',
        'o.lease = h.lease and o.worker = p_worker and o.queue = p_queue and errand.id <@ o.ids',
        'errand.id <@ o.ids',
      ]),
    ],
    [
      'give one to two workers if an acquire overlooked what is held',
      'had an effect under a lost lease',
      changeFunction('nothing is held', ['acquire_errands', 'h.last_id > p_floor', 'false']),
    ],
    [
      'leave some that cannot be run if no worker were taken for silent',
      'errands cannot be run',
      changeFunction('a scrub finds no silent worker', [
        'scrub_errands',
        'or not exists (select 1 from errand_worker w where w.id = s.id and w.beat_at >= p_silent_before)',
        'or false',
      ]),
    ],
  ])('would %s', async (_, fault, { breakRule }) => {
    // which processes meet is chance
    for (let seed = 1; seed <= 20; seed++)
      if ((await runStorm({ seed, breakRule })).faults.join().includes(fault)) return;
    expect.fail('no storm showed it');
  });
});
