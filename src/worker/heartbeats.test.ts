import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { wireKey, WireServer } from '../../test/conformance/wire-server.ts';
import { claimRequest, mostHolds } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { silent } from '../kernel/log.ts';
import type { Service } from '../kernel/service.ts';
import type { Runtime } from '../runtimes/contract.ts';
import { functionRuntime } from '../runtimes/function/function.ts';
import { none } from '../runtimes/none/runtime.ts';
import { mostUnsettled, quickBatch } from './incarnation.ts';
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

it('says how many places are taken: not by runs that execute nothing, nor by reports on their way', async () => {
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

it('may list whatever a worker holds at most: what is unreported, and what its two polls bring at the last moment', () => {
  const mostPlaces = claimRequest.shape.free.maxValue ?? Number.POSITIVE_INFINITY;
  expect(mostUnsettled.ofAll.placed + mostPlaces + quickBatch).toBeLessThanOrEqual(mostHolds);
});

it('says that there are no places once the worker is leaving, and that none is taken when it goes', async () => {
  offer('wait');
  await worker.start();
  await vi.waitFor(() => expect(server.heartbeats.at(-1)).toMatchObject({ places: 4, taken: 1 }), patience);
  const stopped = worker.stop();
  await vi.waitFor(() => expect(server.heartbeats.at(-1)).toMatchObject({ places: 0, taken: 1 }), patience);
  end();
  await stopped;
  expect(server.heartbeats.at(-1)).toMatchObject({ places: 0, taken: 0, holds: [] });
});

it('is given up in time for others before a short lease runs out, when it gets no answer', async () => {
  server.beatMs = 100;
  await worker.start();
  await vi.waitFor(() => expect(server.heartbeats.length).toBeGreaterThan(1), patience);
  server.unanswered.add('heartbeat');
  // the third comes after two that were given up: far sooner than one that has the usual time
  const unheard = (): string[] => server.refused.filter((name) => name === 'heartbeat');
  await vi.waitFor(() => expect(unheard().length).toBeGreaterThan(2), { timeout: 4_000, interval: 5 });
});

it('tells a worker which gateway it is, and another than those it knows makes it fetch again what it has cached', async () => {
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

it('whose id is refused from the start is sent under a new one, and the worker works', async () => {
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

it('whose id is refused later lets go of what was held under it', async () => {
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
