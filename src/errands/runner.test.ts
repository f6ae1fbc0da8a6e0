/** Runners on a real database: results, losses, and what they give back. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { makeTenantDatabase, type TenantDatabase } from '../../test/harness/tenant-database.ts';
import { until } from '../../test/harness/until.ts';
import { newId } from '../kernel/id.ts';
import { deadlineIn } from '../kernel/service.ts';
import { systemTime } from '../kernel/time.ts';
import { ErrandBeat } from './beat.ts';
import type { Errands } from './contract.ts';
import { HeldErrands } from './held.ts';
import { errandKey } from './key.ts';
import { postgresErrands } from './postgres.ts';
import { type ErrandHandler, ErrandRunner } from './runner.ts';

let database: TenantDatabase;
let errands: Errands;
let held: HeldErrands;
const worker = newId();
const none = { scheduled: 0, ready: 0, pending: 0, poisoned: 0 };
beforeEach(async () => {
  database = await makeTenantDatabase();
  errands = postgresErrands(database.db);
  held = new HeldErrands();
});
afterEach(() => database.close());

const makeRunner = (handlers: Record<string, ErrandHandler>): ErrandRunner =>
  new ErrandRunner({ errands, queue: 'aux', worker, held, handlers, time: systemTime, onError: () => {} });

it('a runner calls the handler of each errand once and removes what is done', async () => {
  const seen: unknown[] = [];
  const runner = makeRunner({
    add: async ({ args }) => {
      seen.push(args[0]);
      return undefined;
    },
  });
  await errands.push(
    'aux',
    Array.from({ length: 100 }, (_, i) => ({ key: errandKey('add', i) })),
  );
  await runner.service.start();
  await until('all are gone', async () => (await errands.counts('aux')).ready === 0 && runner.isIdle());
  await runner.service.stop();
  expect([new Set(seen).size, seen.length, held.size]).toEqual([100, 100, 0]);
  expect(await errands.counts('aux')).toEqual(none);
});

it('an errand that fails or has no handler is scheduled again', async () => {
  const runner = makeRunner({
    fail: async () => {
      throw new Error('broken');
    },
  });
  await errands.push('aux', [{ key: errandKey('fail') }, { key: errandKey('unknown') }, { key: 'no key of ours' }]);
  await runner.service.start();
  await until('they are put back', async () => (await errands.counts('aux')).scheduled === 3);
  await runner.service.stop();
  expect(held.size).toBe(0);
});

it('a runner that stops asks its handlers to end and gives back what they leave', async () => {
  let begun = 0;
  const runner = makeRunner({
    heed: ({ signal }) =>
      new Promise((_, reject) => {
        begun += 1;
        signal.addEventListener('abort', () => reject(new Error('asked to end')));
      }),
    ignore: () => new Promise(() => void (begun += 1)),
  });
  await errands.push('aux', [{ key: errandKey('heed') }, { key: errandKey('ignore') }]);
  await runner.service.start();
  await until('both have begun', () => begun === 2 || undefined);
  await runner.service.stop(deadlineIn(1_000));
  expect(await errands.counts('aux')).toEqual({ ...none, scheduled: 2 });
  await errands.due('aux', Date.now() + 1_000, 10);
  expect(await errands.acquire('aux', newId(), 10, Date.now())).toMatchObject([{ attempts: 0 }, { attempts: 0 }]);
});

it('work on an errand that was won back waits for the old work, which is told of the loss', async () => {
  const old = held.hold('aux', { key: 'k', lease: 1 });
  const lost = old.signal;
  const fresh = held.hold('aux', { key: 'k', lease: 2 });
  expect([lost.aborted, held.list()]).toEqual([true, [{ queue: 'aux', key: 'k', lease: 2 }]]);
  let isFree = false;
  const free = fresh.whenFree()?.then(() => {
    isFree = true;
  });
  await Promise.resolve();
  expect(isFree).toBe(false);
  old.release();
  await free;
  expect([isFree, held.size]).toEqual([true, 1]);
});

it('a beat tells the holder of an errand that another worker has taken', async () => {
  await errands.push('aux', [{ key: 'k' }]);
  const [taken] = await errands.acquire('aux', worker, 1, 0);
  const hold = held.hold('aux', taken ?? { key: '', lease: 0 });
  await errands.scrub('aux', 1, 5);
  const beat = new ErrandBeat({ errands, worker, held, time: systemTime, onError: () => {} });
  await beat.beat();
  expect([hold.signal.aborted, held.size]).toEqual([true, 0]);
});
