/** Tasks that misbehave: each ends with the right state, and none harms the worker, which is `up` itself here. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { logOf, waitForOutput, runTask, shell, startTask, endOf } from '../harness/one-task.ts';
import { isProcessRunning } from '../../src/kernel/process/process-stat.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { makeTaskFile, makeTaskFolder } from '../harness/task-folder.ts';
import { until } from '../harness/until.ts';

let product: Product;
let folder: string;

beforeAll(async () => {
  product = await startProduct();
  folder = await makeTaskFolder();
});
afterEach(async () => {
  // a misbehaving task has no effect on the next run
  expect(await runTask(product, shell('echo fine'))).toMatchObject({ state: 'success', text: 'fine\n' });
  expect(product.child.exitCode).toBeNull();
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
  await rm(folder, { recursive: true });
});

const pidsIn = async (file: string): Promise<number[]> =>
  (await readFile(join(folder, file), 'utf8').catch(() => '')).split('\n').filter(Boolean).map(Number);

const allIn = (file: string, count: number): Promise<number[]> =>
  until(`${count} processes have begun`, async () => {
    const pids = await pidsIn(file);
    return pids.length === count ? pids : undefined;
  });

const dead = (pids: readonly number[]): Promise<boolean> =>
  until('they are dead', () => pids.every((pid) => !isProcessRunning(pid)) || undefined);

async function residentBytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
}

describe('output', () => {
  it('output of 300 MB is cut with a notice, and does not harm the worker', { timeout: 240_000 }, async () => {
    await runTask(product, shell('head -c 30000000 /dev/zero'));
    const before = await residentBytes(product.child.pid);
    let highest = before;
    const run = await startTask(product, shell("head -c 300000000 /dev/zero | tr '\\0' x; echo; echo the end"));
    const watching = setInterval(() => {
      void residentBytes(product.child.pid).then((bytes) => (highest = Math.max(highest, bytes)));
    }, 50);
    expect(await endOf(product, run, 200_000)).toMatchObject({ state: 'success', exit_code: 0 });
    clearInterval(watching);
    expect(highest - before).toBeLessThan(150 * 1024 * 1024);
    const text = (await logOf(product, run)).toString();
    expect(text).toContain('the output has reached its limit of 10485760 bytes');
    expect(text).toMatch(/\[millrace\] \d+ bytes were left out here/);
    expect(text.endsWith('x\nthe end\n')).toBe(true);
    expect(text.length).toBeLessThan(11_000_000);
  });

  it('output that is not text comes back byte for byte', async () => {
    const { log, state } = await runTask(
      product,
      shell(String.raw`printf '\377\376\000\200a\303\n\r\000'; printf '\360\237'`),
    );
    expect(state).toBe('success');
    expect(log).toEqual(Buffer.from([0xff, 0xfe, 0, 0x80, 0x61, 0xc3, 10, 13, 0, 0xf0, 0x9f]));
  });

  it('output of all byte values, repeated many times, comes back byte for byte', async () => {
    const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    const script =
      'const all = Buffer.from(Array.from({length:256},(_,i)=>i)); for(let i=0;i<2000;i++) process.stdout.write(all)';
    const { log } = await runTask(product, { process: { command: [process.execPath, '-e', script] } });
    expect(log.equals(Buffer.concat(Array.from({ length: 2_000 }, () => all)))).toBe(true);
  });

  it('output is complete even if the task ended before it was read', async () => {
    const { log } = await runTask(product, shell('printf %65000s x'));
    expect(log).toHaveLength(65_000);
  });

  it('thousands of small lines on both streams stay in order', async () => {
    const script = 'i=0; while [ $i -lt 6000 ]; do echo $i; i=$((i+1)); echo $i >&2; i=$((i+1)); done';
    expect((await runTask(product, shell(script))).text).toBe(
      Array.from({ length: 6_000 }, (_, i) => `${i}\n`).join(''),
    );
  });

  it('a line of 100 MB is cut like any other output', { timeout: 120_000 }, async () => {
    const { state, log } = await runTask(product, shell("head -c 100000000 /dev/zero | tr '\\0' y"));
    expect(state).toBe('success');
    expect(log.subarray(0, 10_485_760).equals(Buffer.alloc(10_485_760, 'y'))).toBe(true);
    expect(log.subarray(-65_536).equals(Buffer.alloc(65_536, 'y'))).toBe(true);
  });

  it('a task that closes its output early does not fail', async () => {
    expect(await runTask(product, shell('exec >&- 2>&-; sleep 0.1; exit 0'))).toMatchObject({
      state: 'success',
      text: '',
    });
    expect(await runTask(product, shell('exec >/dev/null 2>&1; echo hidden; exit 3'))).toMatchObject({ exit_code: 3 });
  });

  it('a background process that holds the output open does not hold up the run', async () => {
    const left = await runTask(product, shell('echo begin; (sleep 100; echo never) & echo end'));
    expect(left).toMatchObject({ state: 'success', text: 'begin\nend\n' });
    const gone = await runTask(product, shell('setsid sh -c "sleep 100; echo never" & echo end'));
    expect(gone).toMatchObject({ state: 'success', text: 'end\n' });
  });
});

describe('task', () => {
  const pid = (file: string, rest: string): string => `sh -c 'echo $$ >> ${folder}/${file}; ${rest}'`;

  it('a task that ignores SIGTERM is killed after its timeout', async () => {
    const script = pid('stubborn', 'trap "" TERM; while :; do sleep 0.05; done');
    const run = await startTask(product, { ...shell(`exec ${script}`), timeout: '500ms' });
    const pids = await allIn('stubborn', 1);
    expect(await endOf(product, run)).toMatchObject({
      state: 'timeout',
      reason: expect.stringContaining('500ms') as string,
    });
    await dead(pids);
  });

  it('all descendants of a task end with it, including those that left its process group', async () => {
    const sleeper = pid('forks', 'exec sleep 100');
    const lines = [
      `${sleeper} &`,
      `(${sleeper} & ${sleeper} &)`,
      `(setsid ${sleeper} &)`,
      `setsid sh -c "${sleeper.replaceAll('$$', '\\$\\$')} &"`,
      'echo ready; wait; sleep 100',
    ];
    const run = await startTask(product, shell(lines.join('\n')));
    const pids = await allIn('forks', 5);
    await product.call('POST /api/runs/{id}/cancel', { params: { id: run } });
    expect(await endOf(product, run)).toMatchObject({ state: 'cancelled' });
    await dead(pids);
  });

  it('a silent task can be cancelled at once, at any time', async () => {
    const run = await startTask(product, shell('exec sleep 1000'));
    await until('it runs', async () => {
      const { state } = await product.call('GET /api/runs/{id}', { params: { id: run } });
      return state === 'running' || undefined;
    });
    const askedAt = performance.now();
    await product.call('POST /api/runs/{id}/cancel', { params: { id: run } });
    expect(await endOf(product, run)).toMatchObject({ state: 'cancelled', reason: 'cancelled by key:root' });
    expect(performance.now() - askedAt).toBeLessThan(5_000);
    expect(await logOf(product, run)).toHaveLength(0);
  });

  it('a task that gives way to a newer instant is killed soon, whatever started the newer one', async () => {
    const { call } = product;
    const limits = { max_active_instants: 1, overlap: 'cancel_older' };
    const document = {
      project: 'one-task',
      name: 'overlapping',
      ...limits,
      tasks: [{ name: 'a', ...shell('exec sleep 1000') }],
    };
    const { id } = await call('PUT /api/jobs', { body: JSON.stringify(document) });
    const start = async (): Promise<string> =>
      (await call('POST /api/jobs/{id}/run', { params: { id }, body: {} })).runs[0] ?? '';
    const older = await start();
    await until('it runs', async () => {
      const { state } = await call('GET /api/runs/{id}', { params: { id: older } });
      return state === 'running' || undefined;
    });
    const askedAt = performance.now();
    const newer = await start();
    const reason = 'gave way to another instant of its job (overlap)';
    expect(await endOf(product, older)).toMatchObject({ state: 'cancelled', reason });
    expect(performance.now() - askedAt).toBeLessThan(4_000);
    await call('POST /api/runs/{id}/cancel', { params: { id: newer } });
  });

  it.each([
    ['a command that does not exist', { process: { command: ['no-such-command-here'] } }, 'error', 'was not found'],
    ['a folder that does not exist', shell('true', { cwd: '/no/such' }), 'error', '"/no/such"'],
    ['its own death', shell('kill -KILL $$'), 'failure', 'SIGKILL'],
    ['a crash', shell('kill -SEGV $$'), 'failure', 'SIGSEGV'],
  ])('the reason of a task that fails by %s names it', async (_, task, state, reason) => {
    expect(await runTask(product, task)).toMatchObject({ state, reason: expect.stringContaining(reason) as string });
  });

  it('at most eight of fifty tasks run at once, and all of them run', async () => {
    await makeTaskFile(join(folder, 'turns'));
    const script = `echo + >> ${folder}/turns; sleep 0.05; echo - >> ${folder}/turns`;
    const runs: string[] = [];
    // at most 32 documents of a tenant may wait
    while (runs.length < 50) {
      runs.push(...(await Promise.all(Array.from({ length: 10 }, () => startTask(product, shell(script))))));
    }
    for (const run of runs) expect(await endOf(product, run)).toMatchObject({ state: 'success' });
    const turns = (await readFile(join(folder, 'turns'), 'utf8')).trim().split('\n');
    let running = 0;
    const most = Math.max(...turns.map((turn) => (running += turn === '+' ? 1 : -1)));
    expect([turns.length, running]).toEqual([100, 0]);
    expect(most).toBeLessThanOrEqual(8);
    expect(most).toBeGreaterThan(1);
  });
});

it('kill -9 of `up` ends its tasks, and they run again after a restart', {
  timeout: 90_000,
}, async () => {
  const home = await mkdtemp(join(tmpdir(), 'millrace-e2e-'));
  const first = await startProduct({ home });
  const run = await startTask(
    first,
    shell('echo pid $$; trap "" TERM; [ -e once ] || { : > once; while :; do sleep 0.05; done; }', { cwd: folder }),
  );
  const pid = Number(await waitForOutput(first, run, /pid (\d+)/));
  first.child.kill('SIGKILL');
  await dead([pid]);
  const second = await startProduct({ home });
  try {
    expect(await endOf(second, run, 60_000)).toMatchObject({ state: 'success', attempt: 1 });
    expect((await logOf(second, run)).toString().match(/pid/g)).toHaveLength(2);
  } finally {
    await second.stop();
    await removeHome(home);
  }
});
