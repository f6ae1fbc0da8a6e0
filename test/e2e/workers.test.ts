/** Workers as separate processes: queues, orderly and immediate shutdown, kills, and an API that goes away. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/kernel/id.ts';
import { lastingPort } from '../harness/lasting-port.ts';
import { endOf, logOf, waitForOutput, runTask, shell, startTask } from '../harness/one-task.ts';
import { isProcessRunning } from '../../src/kernel/process/process-stat.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { makeTaskFolder } from '../harness/task-folder.ts';
import { until } from '../harness/until.ts';
import { startWorkerProcess, type WorkerProcess, type WorkerProcessOptions } from '../harness/worker-process.ts';

// short, so that what a dead worker held comes back soon; and long enough for one that has a slow machine
const lease = { MILLRACE_LEASE: '6s' };
/** A worker is gone 3 s after its drain at the latest; the rest is a busy machine's. */
const goneWithinMs = 15_000;
let product: Product;
let folder: string;
const workers: WorkerProcess[] = [];

beforeAll(async () => {
  product = await startProduct({ args: ['--no-worker'], env: lease });
  folder = await makeTaskFolder();
});
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.end('SIGKILL')));
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
  await rm(folder, { recursive: true });
});

async function worker(options: WorkerProcessOptions = {}): Promise<WorkerProcess> {
  const started = await startWorkerProcess(product, options);
  workers.push(started);
  return started;
}

const dead = (pid: number): Promise<boolean> => until(`${pid} is dead`, () => !isProcessRunning(pid) || undefined);

/** Endless the first time it is run, over at once the second time. */
function twice(mark: string = newId()): object {
  return shell(
    `echo pid $$; [ -e ${folder}/${mark} ] && { echo again; exit 0; }; : > ${folder}/${mark}; trap "" TERM; while :; do sleep 0.05; done`,
  );
}

const pidOf = async (run: string): Promise<number> => Number(await waitForOutput(product, run, /pid (\d+)/));

describe('queues', () => {
  it('workers take runs only from the queues that they name', async () => {
    await worker({ args: ['--queue', 'left', '--queue', 'right', '--name', 'both'] });
    const [left, right] = await Promise.all(
      ['left', 'right'].map((queue) => runTask(product, { ...shell('echo served'), queue })),
    );
    expect([left?.state, right?.state]).toEqual(['success', 'success']);
    const waiting = await startTask(product, { ...shell('echo served'), queue: 'third' });
    const unnamed = await startTask(product, shell('echo served'));
    // the worker has polled again since, because it got a run that came later
    await runTask(product, { ...shell('true'), queue: 'left' });
    for (const run of [waiting, unnamed]) {
      expect(await product.call('GET /api/runs/{id}', { params: { id: run } })).toMatchObject({ started_at: null });
    }
    await worker({ args: ['--queue', 'third'] });
    expect(await endOf(product, waiting)).toMatchObject({ state: 'success' });
    await worker();
    expect(await endOf(product, unnamed)).toMatchObject({ state: 'success' });
  });

  it('a worker takes runs that match both its queues and its runtimes', async () => {
    await worker({ args: ['--runtime', 'none', '--queue', 'mixed'] });
    const process = await startTask(product, { ...shell('true'), queue: 'mixed' });
    expect(await runTask(product, { queue: 'mixed' })).toMatchObject({ state: 'success' });
    expect(await product.call('GET /api/runs/{id}', { params: { id: process } })).toMatchObject({ started_at: null });
    await worker({ args: ['--queue', 'mixed'] });
    expect(await endOf(product, process)).toMatchObject({ state: 'success' });
  });
});

describe('worker that is stopped', () => {
  it.each([
    // longer than the default drain
    ['SIGTERM', 6],
    ['SIGINT', 1],
  ] as const)('a worker that gets %s lets its task end first, if that happens in time', async (signal, seconds) => {
    const leaving = await worker({ env: { MILLRACE_DRAIN: '30s' } });
    const run = await startTask(product, shell(`echo pid $$; sleep ${seconds}; echo done`));
    await pidOf(run);
    expect(await leaving.end(signal)).toBe(0);
    const seen = await product.call('GET /api/runs/{id}', { params: { id: run } });
    expect(seen).toMatchObject({ state: 'success', lease: 1 });
    expect((await logOf(product, run)).toString()).toMatch(/done\n$/);
  });

  it('a stopped worker returns its other runs, and another worker gets them at once, as the same attempt', async () => {
    const leaving = await worker({ env: { MILLRACE_DRAIN: '100ms' } });
    const run = await startTask(product, twice());
    const pid = await pidOf(run);
    const askedAt = performance.now();
    expect(await leaving.end('SIGTERM')).toBe(0);
    expect(performance.now() - askedAt).toBeLessThan(goneWithinMs);
    expect(isProcessRunning(pid)).toBe(false);
    await worker();
    expect(await endOf(product, run)).toMatchObject({ state: 'success', attempt: 1, lease: 2 });
  });

  it('a worker that is stopped twice ends at once; its task dies with it, and the run comes back', async () => {
    const leaving = await worker({ env: { MILLRACE_DRAIN: '1h' } });
    const run = await startTask(product, twice());
    const pid = await pidOf(run);
    leaving.child.kill('SIGTERM');
    const askedAt = performance.now();
    await until('it has ended', () => {
      leaving.child.kill('SIGTERM');
      return leaving.child.exitCode ?? undefined;
    });
    expect(performance.now() - askedAt).toBeLessThan(3_000);
    await dead(pid);
    await worker();
    expect(await endOf(product, run, 60_000)).toMatchObject({ state: 'success', attempt: 1, lease: 2 });
  });
});

it('the tasks of a worker that is killed (kill -9) die, and run again elsewhere', async () => {
  const dying = await worker();
  const run = await startTask(product, twice());
  const pid = await pidOf(run);
  await dying.end('SIGKILL');
  await dead(pid);
  await worker();
  expect(await endOf(product, run, 60_000)).toMatchObject({ state: 'success', attempt: 1, lease: 2 });
});

it('a worker that was suspended for longer than its lease kills the runs that it has lost', {
  timeout: 60_000,
}, async () => {
  const frozen = await worker();
  const run = await startTask(product, twice());
  const pid = await pidOf(run);
  frozen.child.kill('SIGSTOP');
  await worker();
  expect(await endOf(product, run)).toMatchObject({ state: 'success', lease: 2 });
  expect(isProcessRunning(pid)).toBe(true);
  frozen.child.kill('SIGCONT');
  await dead(pid);
  await until('it says so', () => frozen.output().includes('process was suspended') || undefined);
  expect(await product.call('GET /api/runs/{id}', { params: { id: run } })).toMatchObject({
    state: 'success',
    lease: 2,
  });
});

describe('functions of a file', () => {
  const source = `
    export const spins = (_, { log }) => { log('pid ' + process.pid); for (;;); };
    export const stuck = (_, { log }) => { log('stuck'); return new Promise(() => {}); };
    export const leaves = () => process.exit(9);
    export const prints = (input, { log }) => { console.log('to', input); log('the log'); };
    export const huge = () => 'x'.repeat(1e8);
  `;
  it('functions cannot stop their worker, whatever they do', { timeout: 120_000 }, async () => {
    const file = join(folder, 'functions.mjs');
    await writeFile(file, source);
    const patient = await worker({ args: ['--functions', file, '--queue', 'functions', '--max-tasks', '4'] });
    const named = (name: string, more: object = {}): object => ({
      queue: 'functions',
      function: { name, input: 'all' },
      timeout: '30s',
      ...more,
    });
    const spinning = await startTask(product, named('spins', { timeout: '8s' }));
    const pid = await pidOf(spinning);
    // beside an endless loop others run
    expect(await runTask(product, named('prints'))).toMatchObject({ state: 'success', text: 'to all\nthe log\n' });
    expect(await runTask(product, named('leaves'))).toMatchObject({ state: 'failure' });
    expect(await runTask(product, named('stuck', { timeout: '5s' }))).toMatchObject({
      state: 'timeout',
      text: 'stuck\n',
    });
    expect(await runTask(product, named('huge'))).toMatchObject({ state: 'success', text: '' });
    expect(await endOf(product, spinning)).toMatchObject({ state: 'timeout', lease: 1 });
    await dead(pid);
    expect(await patient.end('SIGTERM')).toBe(0);
  });

  it('functions that cannot be loaded end the worker with the reason', async () => {
    const file = join(folder, 'broken.mjs');
    await writeFile(file, 'export const = 1');
    await expect(worker({ args: ['--functions', file] })).rejects.toThrow(
      /exited with 1: .*broken\.mjs cannot be used/s,
    );
  });

  it('functions that never yield end with a killed worker', async () => {
    const file = join(folder, 'endless.mjs');
    await writeFile(file, source);
    const dying = await worker({ args: ['--functions', file, '--queue', 'endless'] });
    const run = await startTask(product, { queue: 'endless', function: { name: 'spins' } });
    const pid = await pidOf(run);
    await dying.end('SIGKILL');
    await dead(pid);
    await product.call('POST /api/runs/{id}/cancel', { params: { id: run } });
  });
});

describe('API that is away', () => {
  it('tasks continue while the API is away, and their output and results arrive afterwards', {
    timeout: 120_000,
  }, async () => {
    const home = await mkdtemp(join(tmpdir(), 'millrace-e2e-'));
    const args = ['--no-worker', '--port', String(await lastingPort())];
    const first = await startProduct({ home, args });
    const away = await startWorkerProcess(first);
    workers.push(away);
    const mark = join(folder, newId());
    const script = `echo before; until [ -e ${mark} ]; do sleep 0.05; done; head -c 2000000 /dev/zero | tr '\\0' x; echo; echo during; : > ${mark}.done`;
    const run = await startTask(first, shell(script));
    await waitForOutput(first, run, /before/);
    await first.stop();
    await writeFile(mark, '');
    // two megabytes exceed the buffer: output waits only while the API answers, not while it is away
    await until('the task has ended', () => existsSync(`${mark}.done`) || undefined);
    const second = await startProduct({ home, args });
    try {
      expect(await endOf(second, run, 60_000)).toMatchObject({ state: 'success', lease: 1, exit_code: 0 });
      const text = (await logOf(second, run)).toString();
      expect(text).toBe(`before\n${'x'.repeat(2_000_000)}\nduring\n`);
      expect(away.output()).toContain('API unreachable');
      expect(await runTask(second, shell('echo next'))).toMatchObject({ state: 'success' });
    } finally {
      await away.end('SIGTERM');
      await second.stop();
      await removeHome(home);
    }
  });

  it('a worker can be stopped while the API is away, without waiting for an answer', { timeout: 60_000 }, async () => {
    const home = await mkdtemp(join(tmpdir(), 'millrace-e2e-'));
    const alone = await startProduct({ home, args: ['--no-worker'] });
    const leaving = await startWorkerProcess(alone, { env: { MILLRACE_DRAIN: '200ms' } });
    workers.push(leaving);
    const run = await startTask(alone, shell('echo pid $$; trap "" TERM; while :; do echo more; sleep 0.01; done'));
    const pid = Number(await waitForOutput(alone, run, /pid (\d+)/));
    await alone.stop();
    const askedAt = performance.now();
    expect(await leaving.end('SIGTERM')).toBe(0);
    expect(performance.now() - askedAt).toBeLessThan(goneWithinMs);
    await dead(pid);
    await removeHome(home);
  });
});
