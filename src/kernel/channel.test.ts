import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { Channel } from './channel.ts';

/** Whether the promise settles without anything else happening. */
async function settles(promise: Promise<unknown>): Promise<boolean> {
  const turn = new Promise((resolve) => setImmediate(() => resolve(false)));
  return (await Promise.race([promise.then(() => true), turn])) === true;
}

describe('Channel', () => {
  it('a receiver gets all queued items as one batch, in order, up to its maximum', async () => {
    const channel = new Channel<number>(10);
    for (const item of [1, 2, 3]) await channel.send(item);
    expect(await channel.receive(2)).toEqual([1, 2]);
    expect(await channel.receive(2)).toEqual([3]);
    expect(channel.size).toBe(0);
  });

  it('a sender waits while the channel is full, and its item is queued once there is room', async () => {
    const channel = new Channel<number>(2);
    await channel.send(1);
    await channel.send(2);
    const third = channel.send(3);
    expect(await settles(third)).toBe(false);
    expect(channel.offer(4)).toBe(false);
    expect(channel.size).toBe(2);
    expect(await channel.receive(1)).toEqual([1]);
    expect(await settles(third)).toBe(true);
    expect(await channel.receive(9)).toEqual([2, 3]);
  });

  it('a channel never exceeds its capacity and loses no item, with 50 senders at once', async () => {
    const channel = new Channel<number>(3);
    const sending = Promise.all(Array.from({ length: 50 }, (_, i) => channel.send(i)));
    const seen: number[] = [];
    while (seen.length < 50) {
      expect(channel.size).toBeLessThanOrEqual(3);
      seen.push(...(await channel.receive(2)));
    }
    await sending;
    expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });

  it('a sender whose signal aborts stops waiting, and its item is not queued', async () => {
    const channel = new Channel<number>(1);
    await channel.send(1);
    const stop = new AbortController();
    const waiting = channel.send(2, stop.signal);
    stop.abort();
    expect(await settles(waiting)).toBe(true);
    expect(await channel.receive(9)).toEqual([1]);
    expect(channel.size).toBe(0);
  });

  it('an item ends the wait for an arrival and stays in the channel', async () => {
    const channel = new Channel<number>(1);
    const arrival = channel.arrival();
    expect(await settles(arrival)).toBe(false);
    channel.offer(1);
    expect(await settles(arrival)).toBe(true);
    expect(channel.size).toBe(1);
  });

  it('an item wakes a receiver that came right after an aborted one', async () => {
    const channel = new Channel<number>(1);
    const stop = new AbortController();
    const first = channel.arrival(stop.signal);
    stop.abort();
    const second = channel.arrival();
    await first;
    channel.offer(1);
    expect(await settles(second)).toBe(true);
  });

  it('a closed channel delivers the remaining items and accepts no more', async () => {
    const channel = new Channel<number>(1);
    await channel.send(1);
    const stuck = channel.send(2);
    channel.close();
    expect(await settles(stuck)).toBe(true);
    expect(channel.offer(3)).toBe(false);
    await channel.send(4);
    expect(await channel.receive(9)).toEqual([1]);
    expect(await channel.receive(9)).toEqual([]);
  });

  it('a receiver stops waiting when the channel is closed or the signal aborts', async () => {
    const channel = new Channel<number>(1);
    const stop = new AbortController();
    const aborted = channel.receive(1, stop.signal);
    stop.abort();
    expect(await aborted).toEqual([]);
    const closed = channel.receive(1);
    channel.close();
    expect(await closed).toEqual([]);
  });

  it('a channel leaves no listener on a signal that outlives many receives and sends', async () => {
    const channel = new Channel<number>(1);
    const { signal } = new AbortController();
    for (let i = 0; i < 20; i++) {
      const received = channel.receive(1, signal);
      channel.offer(i);
      await received;
      await channel.send(i, signal);
      const blocked = channel.send(i, signal);
      await channel.receive(1, signal);
      await blocked;
      await channel.receive(1, signal);
    }
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});
