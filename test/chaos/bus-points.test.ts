/**
 * The bus of one installation under load, while processes die at every other of its checkpoints, freeze, and lose PostgreSQL. In
 * the end every acknowledged event has arrived, in order. `npm run chaos` walks all checkpoints several times.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BusWalk, busWalked } from './bus-walk.ts';

let walk: BusWalk;
beforeAll(async () => {
  walk = await BusWalk.start({ seed: 1, passages: 1 });
});
afterAll(() => walk?.close());

it('a courier or an API that dies at a checkpoint comes back, and others continue', { timeout: 300_000 }, async () => {
  const at = busWalked.filter((_, i) => i % 2 === 0);
  await walk.dieAt(at);
  expect(walk.faults).toEqual([]);
  expect([...walk.died].toSorted()).toEqual(at.toSorted());
  await walk.goOn();
});

it('courier frozen: its leases pass on', { timeout: 200_000 }, () => walk.freezeCourier());

it('backends terminated under load: deliveries and publishers go on', { timeout: 200_000 }, async () => {
  await walk.installation.terminateBackends('millrace courier%');
  await walk.installation.terminateBackends('millrace%', 0.5);
  await walk.goOn();
});

it('PostgreSQL restarts: deliveries and publishers go on', { timeout: 200_000 }, async () => {
  await walk.installation.crashDatabase();
  await walk.goOn();
  await walk.installation.restartDatabase();
  await walk.goOn();
});

it('every acknowledged event was delivered in order, in stable batches, and nothing is left (I7, I8)', {
  timeout: 300_000,
}, async () => {
  expect(await walk.poisoned()).toBe(0);
  expect(await walk.finish()).toEqual([]);
});
