/** One tenant never disturbs another (I11), in a worker that serves both. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { wireKey, WireServer } from '../../test/conformance/wire-server.ts';
import type { HeldRun, Report, RuntimeBlock } from '../contract/wire.ts';
import { newId } from '../kernel/id.ts';
import { silent } from '../kernel/log.ts';
import type { Service } from '../kernel/service.ts';
import type { Runtime } from '../runtimes/contract.ts';
import { functionRuntime } from '../runtimes/function/function.ts';
import { none } from '../runtimes/none/runtime.ts';
import { processRuntime } from '../runtimes/process/process.ts';
import type { WorkerOptions } from './settings.ts';
import { makeWorker } from './worker.ts';

const patience = { timeout: 25_000, interval: 5 };
let worker: Service | undefined;
let server = new WireServer();
let url = '';
/** The ids of two tenants. */
const [a, b] = [newId(), newId()];

beforeEach(async () => {
  server = new WireServer();
  url = await server.start();
});
afterEach(async () => {
  await worker?.stop();
  await server.stop();
});

async function startWorker(options: Partial<WorkerOptions> = {}): Promise<void> {
  const runtimes = (): Runtime[] => [
    none,
    functionRuntime({ functions: { f: () => 1 }, graceMs: 300 }),
    processRuntime({ environment: process.env, graceMs: 300, lingerMs: 200 }),
  ];
  const timing = { heartbeatMs: 50, pollMs: 2_000, drainMs: 100 };
  const self = { id: newId(), name: 'test', version: '0', url, key: wireKey, runtimes, log: silent };
  worker = makeWorker({ ...self, ...timing, ...options });
  await worker.start();
}

const shell = (script: string, env: RuntimeBlock['env'] = {}): RuntimeBlock => ({
  kind: 'process',
  command: ['/bin/sh', '-c', script],
  env,
  cwd: null,
});

async function reported(run: HeldRun): Promise<Report> {
  return await vi.waitFor(() => {
    const report = server.report(run);
    if (!report) throw new Error('not reported yet');
    return report;
  }, patience);
}

function expectReason(report: Report, state: Report['state'], part: string): void {
  expect(report.state).toBe(state);
  expect(report.reason).toContain(part);
}

describe('unavailable tenants', () => {
  it('a run whose definition cannot be read is returned, and leaves its place to others', async () => {
    await startWorker({ maxTasks: 1 });
    server.away.add(b);
    const stuck = server.offer(server.define({ kind: 'function', name: 'f', input: null }, 60_000, b));
    const other = server.offer(server.define({ kind: 'function', name: 'f', input: null }));
    expect(await reported(other)).toMatchObject({ state: 'success' });
    expect(server.report(stuck)).toBeUndefined();
    server.away.clear();
    expectReason(await reported(stuck), 'returned', 'could not');
  });

  it('a run whose stash cannot be read is returned, and leaves its place to others', async () => {
    await startWorker({ maxTasks: 1 });
    const definition = server.define(shell('true', { KEY: { stash: 'key' } }), 60_000, b);
    server.secrets.set('key', 'secret');
    await reported(server.offer(definition));
    server.away.add(b);
    const stuck = server.offer(definition);
    const other = server.offer(server.define(shell('true')));
    expect(await reported(other)).toMatchObject({ state: 'success' });
    server.away.clear();
    expectReason(await reported(stuck), 'returned', 'could not');
  });

  it('a run whose stash can never be read ends with the reason, and leaves its place to others', async () => {
    await startWorker({ maxTasks: 1 });
    server.sealed.add('key');
    const doomed = server.offer(server.define(shell('true', { KEY: { stash: 'key' } }), 60_000, b));
    const other = server.offer(server.define(shell('true')));
    expectReason(await reported(doomed), 'error', 'could not run it: stash entry key: of another key');
    expect(await reported(other)).toMatchObject({ state: 'success' });
  });

  it('an unavailable tenant delays neither places, output nor reports of others', async () => {
    await startWorker({ maxTasks: 1 });
    const talk = (tenant: string) => server.define(shell('echo said'), 60_000, tenant);
    const [ofA, ofB] = [talk(a), talk(b)];
    await reported(server.offer(ofB));
    server.away.add(b);
    const stuck = server.offer(ofB);
    const others = [server.offer(ofA), server.offer(ofA)];
    for (const run of others) expect(await reported(run)).toMatchObject({ state: 'success' });
    expect(server.output(others[0] as HeldRun)).toBe('said\n');
    expect([server.report(stuck), server.output(stuck)]).toEqual([undefined, '']);
    const held = () => server.heartbeats.at(-1)?.holds.map(({ run }) => run);
    await vi.waitFor(() => expect(held()).toContain(stuck.run), patience);
    server.away.clear();
    expect(await reported(stuck)).toMatchObject({ state: 'success' });
    expect(server.output(stuck)).toBe('said\n');
  });

  it('an unavailable tenant does not use up the worker’s limit of unacknowledged reports', async () => {
    await startWorker();
    const [ofA, ofB] = [server.define({ kind: 'none' }, 60_000, a), server.define({ kind: 'none' }, 60_000, b)];
    await reported(server.offer(ofB));
    server.away.add(b);
    const stuck = Array.from({ length: 4_000 }, () => server.offer(ofB));
    await vi.waitFor(() => expect(server.heartbeats.at(-1)?.holds).toHaveLength(4_000), patience);
    expect(await reported(server.offer(ofA))).toMatchObject({ state: 'success' });
    server.away.clear();
    await reported(stuck.at(-1) as HeldRun);
  });
});
