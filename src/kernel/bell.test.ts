import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { HandTime } from '../../test/harness/hand-time.ts';
import { Bell } from './bell.ts';

const { signal } = new AbortController();

describe('Bell', () => {
  it('a ring ends the wait', async () => {
    const bell = new Bell(new HandTime(0));
    const heard = bell.wait(1_000, signal);
    bell.ring();
    expect(await heard).toBe(true);
  });

  it('rings without a waiter are remembered as one ring', async () => {
    const time = new HandTime(0);
    const bell = new Bell(time);
    bell.ring();
    bell.ring();
    expect(await bell.wait(1_000, signal)).toBe(true);
    const again = bell.wait(1_000, signal);
    time.advance(1_000);
    expect(await again).toBe(false);
  });

  it('a wait returns false when it times out or the signal aborts', async () => {
    const time = new HandTime(0);
    const bell = new Bell(time);
    const stop = new AbortController();
    const late = bell.wait(500, stop.signal);
    time.advance(499);
    expect(time.sleeping).toBe(1);
    time.advance(1);
    expect(await late).toBe(false);
    const aborted = bell.wait(500, stop.signal);
    stop.abort();
    expect(await aborted).toBe(false);
    expect(await bell.wait(500, stop.signal)).toBe(false);
    expect(time.sleeping).toBe(0);
  });

  it('a wait leaves no listener on the signal', async () => {
    const bell = new Bell(new HandTime(0));
    for (let i = 0; i < 20; i++) {
      const heard = bell.wait(1_000, signal);
      bell.ring();
      await heard;
    }
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});
