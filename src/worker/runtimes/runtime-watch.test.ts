import { mkdtemp, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { detachedRuntime } from '../../../test/conformance/detached-runtime.ts';
import { wireKey, WireServer } from '../../../test/conformance/wire-server.ts';
import type { ClaimedRun } from '../../contract/wire.ts';
import { newId } from '../../kernel/id.ts';
import { silent } from '../../kernel/log.ts';
import { isProcessRunning } from '../../kernel/process/process-stat.ts';
import type { Service } from '../../kernel/service.ts';
import { none } from '../../runtimes/none/runtime.ts';
import { makeWorker } from '../worker.ts';

const patience = { timeout: 20_000, interval: 5 };
let server = new WireServer();
let folder = '';
let id = newId();
let worker: Service | undefined;

beforeEach(async () => {
  server = new WireServer();
  id = newId();
  folder = await mkdtemp(join(tmpdir(), 'millrace-detached-'));
});
afterEach(async () => {
  await worker?.stop();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

async function startWorker(incarnation = 1): Promise<void> {
  const url = await server.start().catch(() => '');
  address = url === '' ? address : url;
  worker = makeWorker({
    id,
    incarnation: () => incarnation,
    name: 'test',
    version: '0',
    url: address,
    key: wireKey,
    log: silent,
    heartbeatMs: 20,
    pollMs: 100,
    drainMs: 30_000,
    runtimes: (identity) => [none, detachedRuntime(folder, identity)],
    runtimeTimes: { checkMs: 20, recheckMs: 20, answerMs: 2_000 },
  });
  await worker.start();
}
let address = '';

function offer(script: string, env = {}): ClaimedRun {
  return server.offer(server.define({ kind: 'process', command: ['/bin/sh', '-c', script], env, cwd: null }));
}

async function pidOf(run: ClaimedRun): Promise<number> {
  await vi.waitFor(() => expect(server.output(run)).toContain('pid'), patience);
  return Number(/pid (\d+)/.exec(server.output(run))?.[1]);
}

it('a worker leaves the lane of an unavailable runtime, and joins it again when the reason is gone', async () => {
  await startWorker();
  const before = offer('exit 0');
  await vi.waitFor(() => expect(server.report(before)?.state).toBe('success'), patience);
  await rm(folder, { recursive: true });
  const reason = `there is no folder ${folder}`;
  await vi.waitFor(() => {
    expect(server.heartbeats.at(-1)).toMatchObject({ runtimes: ['none'], unavailable: { process: reason } });
    // the poll for runs with a place has been replaced by one that waits for signals only
    expect(server.polls.some(({ runtimes }) => runtimes.length === 0)).toBe(true);
  }, patience);
  const during = offer('exit 0');
  const polls = server.polls.length;
  await vi.waitFor(() => expect(server.polls.length).toBeGreaterThan(polls + 2), patience);
  expect(server.report(during)).toBeUndefined();
  await mkdir(folder);
  await vi.waitFor(() => expect(server.report(during)?.state).toBe('success'), patience);
  // the next heartbeat may follow the run
  await vi.waitFor(() => expect(server.heartbeats.at(-1)?.unavailable).toEqual({}), patience);
});

it('a run whose process was killed from outside is reported as lost, with the reason', async () => {
  await startWorker();
  const run = offer('echo pid $$; exec sleep 60');
  process.kill(-(await pidOf(run)), 'SIGKILL');
  await vi.waitFor(() => expect(server.report(run)).toMatchObject({ state: 'lost' }), patience);
  expect(server.report(run)?.reason).toContain('SIGKILL');
});

it('a task that outlives its worker is released at once when the worker stops, and its next incarnation ends it before it claims', async () => {
  await startWorker(1);
  const run = offer('echo pid $$; exec sleep 60');
  const pid = await pidOf(run);
  await worker?.stop(); // the test would time out if this waited for the drain of 30 s
  expect(server.report(run)?.state).toBe('returned');
  expect(isProcessRunning(pid)).toBe(true);
  await startWorker(2);
  await vi.waitFor(() => expect(isProcessRunning(pid)).toBe(false), patience);
  expect(await readdir(folder)).toEqual([]);
});

it('a runtime knows which variables are secret', async () => {
  server.secrets.set('key', 'hidden-value');
  await startWorker();
  const run = offer('echo pid $$; exec sleep 60', { KEY: { stash: 'key' }, OPEN: 'seen' });
  await pidOf(run);
  const record = await readFile(join(folder, run.run), 'utf8');
  expect(record).toContain('OPEN=seen');
  expect(record).not.toContain('hidden-value');
  expect(record).not.toContain('run-credential');
  server.cancel.push(run);
  server.wake();
  await vi.waitFor(() => expect(server.report(run)?.state).toBe('cancelled'), patience);
});
