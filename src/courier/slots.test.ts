/** Slots for connections: limits, turns between hosts, and the quarter that hosts with few slots keep. */
import { expect, it } from 'vitest';
import type { Permit } from '../kernel/semaphore.ts';
import { Slots } from './slots.ts';

const never = new AbortController().signal;

function takeMany(
  slots: Slots,
  host: string,
  count: number,
): { readonly got: Permit[]; readonly all: Promise<unknown> } {
  const got: Permit[] = [];
  const taking = Array.from({ length: count }, async () => {
    const permit = await slots.take(host, never);
    if (permit !== undefined) got.push(permit);
  });
  return { got, all: Promise.all(taking) };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('a host gets no more than its limit, and one of its requests follows each that ends', async () => {
  const slots = new Slots({ total: 100, perHost: 3 });
  const { got } = takeMany(slots, 'a', 5);
  await turn();
  expect(got).toHaveLength(3);
  got[0]?.release();
  got[0]?.release();
  await turn();
  expect(got).toHaveLength(4);
  expect(slots.held).toBe(3);
});

it('hosts that hang leave a quarter of the slots to hosts with few', async () => {
  const slots = new Slots({ total: 16, perHost: 8 });
  const hanging = ['a', 'b', 'c'].map((host) => takeMany(slots, host, 20));
  await turn();
  const held = hanging.map(({ got }) => got.length);
  expect(held).toEqual([8, 4, 4]);
  // the last four slots went to hosts with fewer than four each, so a newcomer waits only for one to end
  const newcomer = takeMany(slots, 'd', 1);
  hanging[0]?.got[0]?.release();
  await turn();
  expect(newcomer.got).toHaveLength(1);
});

it('one hanging host cannot take the slots of others', async () => {
  const slots = new Slots({ total: 16, perHost: 64 });
  const hanging = takeMany(slots, 'a', 100);
  await turn();
  expect(hanging.got).toHaveLength(12);
  const others = takeMany(slots, 'b', 4);
  await others.all;
  expect(others.got).toHaveLength(4);
});

it('hosts that wait take turns', async () => {
  const slots = new Slots({ total: 1, perHost: 64 });
  const order: string[] = [];
  const first = await slots.take('x', never);
  const work = async (host: string): Promise<void> => {
    const permit = await slots.take(host, never);
    order.push(host);
    permit?.release();
  };
  const all = Promise.all(['a', 'a', 'a', 'b', 'c'].map(work));
  first?.release();
  await all;
  expect(order).toEqual(['a', 'b', 'c', 'a', 'a']);
  expect(slots.held).toBe(0);
});

it('a request that is aborted leaves the line', async () => {
  const slots = new Slots({ total: 1, perHost: 1 });
  const first = await slots.take('a', never);
  const abort = new AbortController();
  const waiting = slots.take('a', abort.signal);
  abort.abort();
  expect(await waiting).toBeUndefined();
  first?.release();
  expect(await slots.take('a', never)).toBeDefined();
});
