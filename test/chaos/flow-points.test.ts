/**
 * Flows of every kind, 300 executions under way, driven by the conductor of an `up` and by one beside it: processes die at every third
 * checkpoint of conductors, workers and the API, one freezes, connections are lost. `npm run chaos` walks all checkpoints several times.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { FlowWalk, flowWalked } from './flows/walk.ts';

let walk: FlowWalk;
beforeAll(async () => {
  walk = await FlowWalk.start({ seed: 1, atOnce: 300, passages: 3 });
});
afterAll(() => walk?.close());

it('a conductor, a worker or an API that dies at a checkpoint comes back, and others go on', {
  timeout: 300_000,
}, async () => {
  const at = flowWalked.filter((_, i) => i % 3 === 0);
  await walk.dieAt(at);
  expect(walk.faults).toEqual([]);
  expect([...walk.died].toSorted()).toEqual(at.toSorted());
});

it('a frozen conductor is taken for dead, and goes on under a new id', { timeout: 200_000 }, () => walk.freeze());

it('lost connections, and a PostgreSQL that restarts, cost nothing but time', { timeout: 200_000 }, async () => {
  await walk.loseConnections();
  await walk.installation.restartDatabase('immediate');
  await walk.goOn();
  await walk.installation.restartDatabase('fast');
  await walk.goOn();
});

it('every execution has ended as it would have, each effect happened once, and no timer was early (I9, I10)', {
  timeout: 300_000,
}, async () => {
  expect(await walk.finish()).toEqual([]);
});
