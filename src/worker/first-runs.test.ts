/** Runs that take no place, and whose definitions a worker does not know yet, as after the first start of many jobs. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { wireKey, WireServer } from '../../test/conformance/wire-server.ts';
import { newId } from '../kernel/id.ts';
import { silent } from '../kernel/log.ts';
import type { Service } from '../kernel/service.ts';
import { systemTime, type Time } from '../kernel/time.ts';
import { none } from '../runtimes/none/runtime.ts';
import { makeWorker } from './worker.ts';

const patience = { timeout: 25_000, interval: 5 };
let server = new WireServer();
let url = '';
let worker: Service | undefined;

beforeEach(async () => {
  server = new WireServer();
  url = await server.start();
});
afterEach(async () => {
  await worker?.stop();
  await server.stop();
});

async function startWorker(time: Time = systemTime): Promise<Service> {
  const self = { id: newId(), name: 'test', version: '0', url, key: wireKey, runtimes: () => [none], log: silent };
  worker = makeWorker({ ...self, heartbeatMs: 50, pollMs: 2_000, drainMs: 50, time });
  await worker.start();
  return worker;
}

const offerNew = (count: number) => Array.from({ length: count }, () => server.offer(server.define({ kind: 'none' })));
const countServed = (name: string): number => server.served.filter((each) => each === name).length;

/** No two readings are equal. */
function makeSteppingTime(): Time {
  let readings = 0;
  return { ...systemTime, now: () => Date.now() + ++readings * 1_000 };
}

it('runs of one claim start together once their definitions have been read, in one request', async () => {
  const runs = offerNew(300);
  await startWorker(makeSteppingTime());
  await vi.waitFor(() => expect(server.reports).toHaveLength(runs.length), patience);
  expect(server.reports.every(({ state }) => state === 'success')).toBe(true);
  expect(new Set(server.reports.map((report) => report.started_at)).size).toBe(1);
  expect([countServed('definitions'), countServed('report')]).toEqual([1, 1]);
});

it('runs with known definitions do not wait for the definitions of the others', async () => {
  const known = server.define({ kind: 'none' });
  server.offer(known);
  await startWorker();
  await vi.waitFor(() => expect(server.reports).toHaveLength(1), patience);
  server.unanswered.add('definitions');
  const unread = offerNew(3);
  const ready = server.offer(known);
  await vi.waitFor(() => expect(server.report(ready)?.state).toBe('success'), patience);
  await vi.waitFor(() => expect(server.refused).toContain('definitions'), patience);
  expect(unread.map((run) => server.report(run))).toEqual([undefined, undefined, undefined]);
});

it('a worker that is stopped while it reads their definitions returns the runs', async () => {
  server.unanswered.add('definitions');
  const runs = offerNew(3);
  const stopping = await startWorker();
  await vi.waitFor(() => expect(server.refused).toContain('definitions'), patience);
  await stopping.stop();
  expect(runs.map((run) => server.report(run)?.state)).toEqual(['returned', 'returned', 'returned']);
});
