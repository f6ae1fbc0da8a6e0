import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { wireKey, WireServer } from '../../test/conformance/wire-server.ts';
import { claimRequest, maxHolds } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { silent } from '../kernel/log.ts';
import type { Service } from '../kernel/service.ts';
import type { Runtime } from '../runtimes/contract.ts';
import { functionRuntime } from '../runtimes/function/function.ts';
import { none } from '../runtimes/none/runtime.ts';
import { maxUnsettled, quickBatch } from './limits.ts';
import { makeWorker } from './worker.ts';

const patience = { timeout: 25_000, interval: 5 };
let server: WireServer;
let worker: Service;
let end: () => void;
let id: string;
let warnings: unknown[];
let identities: object[];

beforeEach(async () => {
  server = new WireServer();
  const url = await server.start();
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const runtimes = (): Runtime[] => [none, functionRuntime({ functions: { wait: () => ended, done: () => {} } })];
  const timing = { heartbeatMs: 50, pollMs: 2_000, drainMs: 10_000 };
  id = newId();
  warnings = [];
  identities = [];
  const log = { ...silent, warn: (...said: unknown[]) => void warnings.push(said.at(-1)) };
  const onNewIdentity = (identity: object): void => void identities.push(identity);
  const self = { id, name: 'test', version: '0', url, key: wireKey, runtimes, log, maxTasks: 4, onNewIdentity };
  worker = makeWorker({ ...self, ...timing });
});
afterEach(async () => {
  end();
  await worker.stop();
  await server.stop();
});

const offer = (name: string) => server.offer(server.define({ kind: 'function', name, input: null }));

it('a heartbeat counts the taken places, without runs that execute nothing and unacknowledged reports', async () => {
  server.unanswered.add('report');
  offer('wait');
  offer('done');
  server.offer(server.define({ kind: 'none' }));
  await worker.start();
  await vi.waitFor(() => {
    const beat = server.heartbeats.at(-1);
    expect([beat?.holds.length, beat?.taken, beat?.places]).toEqual([3, 1, 4]);
  }, patience);
});

it('a heartbeat can list the maximum that a worker holds: unacknowledged reports, and the runs of two polls', () => {
  const maxPlaces = claimRequest.shape.free.maxValue ?? Number.POSITIVE_INFINITY;
  expect(maxUnsettled.ofAll.placed + maxPlaces + quickBatch).toBeLessThanOrEqual(maxHolds);
});

it('a heartbeat reports no places while the worker is stopping, and none taken at the end', async () => {
  offer('wait');
  await worker.start();
  await vi.waitFor(() => expect(server.heartbeats.at(-1)).toMatchObject({ places: 4, taken: 1 }), patience);
  const stopped = worker.stop();
  await vi.waitFor(() => expect(server.heartbeats.at(-1)).toMatchObject({ places: 0, taken: 1 }), patience);
  end();
  await stopped;
  expect(server.heartbeats.at(-1)).toMatchObject({ places: 0, taken: 0, holds: [] });
});

it('an unanswered heartbeat is abandoned in time for others before a short lease expires', async () => {
  server.beatMs = 100;
  await worker.start();
  await vi.waitFor(() => expect(server.heartbeats.length).toBeGreaterThan(1), patience);
  server.unanswered.add('heartbeat');
  // the third comes after two that were abandoned: far sooner than with the usual timeout
  const unheard = (): string[] => server.refused.filter((name) => name === 'heartbeat');
  await vi.waitFor(() => expect(unheard().length).toBeGreaterThan(2), { timeout: 4_000, interval: 5 });
});

it('a heartbeat answer of an unknown gateway makes the worker fetch its definitions again', async () => {
  await worker.start();
  const definition = server.define({ kind: 'none' });
  const fetched = (): number => server.served.filter((name) => name === 'definitions').length;
  const reported = async (): Promise<void> => {
    const run = server.offer(definition);
    await vi.waitFor(() => expect(server.report(run)).toBeDefined(), patience);
  };
  await reported();
  const first = server.epoch;
  server.epoch = 'another';
  await vi.waitFor(() => expect(server.heartbeats.at(-1)?.seen).toEqual({ [first]: 0, another: 0 }), patience);
  await reported();
  expect(fetched()).toBe(2);
  server.epoch = first;
  const beats = server.heartbeats.length;
  await vi.waitFor(() => expect(server.heartbeats.length).toBeGreaterThan(beats + 1), patience);
  await reported();
  expect(fetched()).toBe(2);
});

const healed = 'worker id refused; continuing under a new id';

it('a worker whose id is refused at the start continues under a new id', async () => {
  server.refusedIds.add(id);
  const run = offer('done');
  await worker.start();
  await vi.waitFor(() => expect(server.report(run)).toMatchObject({ state: 'success' }), patience);
  const used = new Set(server.heartbeats.map((beat) => beat.worker));
  expect(used.size).toBe(1);
  expect(used).not.toContain(id);
  expect(warnings).toEqual([healed]);
  expect(identities).toEqual([{ id: [...used][0], incarnation: 1 }]);
});

it('a worker whose id is refused later gives up the runs that it held under it', async () => {
  const lost = offer('wait');
  await worker.start();
  await vi.waitFor(() => expect(server.heartbeats.at(-1)?.holds).toHaveLength(1), patience);
  server.refusedIds.add(id);
  await vi.waitFor(() => expect(server.heartbeats.at(-1)).toMatchObject({ incarnation: 1, holds: [] }), patience);
  const next = offer('done');
  await vi.waitFor(() => expect(server.report(next)).toBeDefined(), patience);
  expect(server.report(lost)).toBeUndefined();
  expect(warnings).toEqual([healed]);
});
