import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { makeTask, Recorder } from '../../../test/conformance/task.ts';
import { bundleModule } from '../../../test/harness/bundled.ts';
import { isProcessRunning } from '../../kernel/process/process-stat.ts';
import type { Outcome, Output } from '../contract.ts';
import { processRuntime } from './process.ts';

const never = new AbortController().signal;
const patience = { timeout: 10_000, interval: 10 };
const options = { environment: { ...process.env, SECRET_OF_WORKER: 'x' }, graceMs: 1_000, lingerMs: 200 };
const runtime = processRuntime(options);
/** With a long grace, for tasks that clean up slowly. */
const patient = processRuntime({ ...options, graceMs: 10_000 });
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-process-'));
  await runtime.service.start();
  await patient.service.start();
});
afterAll(async () => {
  await runtime.service.stop();
  await patient.service.stop();
  await rm(folder, { recursive: true });
});

/** Runs a shell script as a task. */
function run(script: string, output: Output = new Recorder(), signal = never, by = runtime): Promise<Outcome> {
  return by.run(makeTask({ kind: 'process', command: ['/bin/sh', '-c', script], cwd: folder }), output, signal);
}

function command(...parts: string[]): Promise<Outcome> {
  return runtime.run(makeTask({ kind: 'process', command: parts, cwd: null }), new Recorder(), never);
}

async function pidsIn(file: string, count: number): Promise<number[]> {
  return await vi.waitFor(async () => {
    const pids = (await readFile(join(folder, file), 'utf8')).trim().split('\n').map(Number);
    expect(pids).toHaveLength(count);
    return pids;
  }, patience);
}

async function allDead(pids: readonly number[]): Promise<void> {
  await vi.waitFor(() => expect(pids.map(isProcessRunning)).not.toContain(true), patience);
}

describe('outcomes of processes', () => {
  it('an exit code other than 0 is a failure with that code', async () => {
    expect(await run('exit 7')).toEqual({ state: 'failure', exitCode: 7, reason: 'it ended with exit code 7' });
  });

  it('an end by a signal is a failure that names it', async () => {
    expect(await run('kill -SEGV $$')).toMatchObject({
      state: 'failure',
      exitCode: null,
      reason: 'it was ended by SIGSEGV',
    });
  });

  it('a command that does not exist is an error that names it', async () => {
    const outcome = await command('no-such-command-here', 'x');
    expect(outcome.state).toBe('error');
    expect(outcome.reason).toContain('"no-such-command-here" was not found');
  });

  it('a file that is not executable is an error that names it', async () => {
    const file = join(folder, 'plain.txt');
    await writeFile(file, 'text');
    await chmod(file, 0o644);
    const outcome = await command(file);
    expect(outcome.state).toBe('error');
    expect(outcome.reason).toContain('may not be executed');
  });

  it('a folder that does not exist is an error that names it', async () => {
    const task = makeTask({ kind: 'process', command: ['true'], cwd: '/no/such/folder' });
    const outcome = await runtime.run(task, new Recorder(), never);
    expect(outcome.state).toBe('error');
    expect(outcome.reason).toContain('"/no/such/folder"');
  });

  it('a NUL byte in an argument, or more arguments than the machine allows, is an error', async () => {
    expect((await command('echo', 'a\0b')).reason).toContain('NUL byte');
    expect((await command('echo', 'x'.repeat(200_000))).reason).toContain('more arguments');
  });

  it('failed spawns leave no descriptor open', async () => {
    const before = (await readdir('/proc/self/fd')).length;
    for (let i = 0; i < 20; i++) await command('no-such-command-here');
    expect((await readdir('/proc/self/fd')).length).toBeLessThan(before + 10);
  });
});

describe('environment', () => {
  it('the environment has the declared variables and those that are documented as inherited, nothing else', async () => {
    const output = new Recorder();
    const task = makeTask(
      { kind: 'process', command: ['/usr/bin/env'], cwd: null },
      { DECLARED: 'yes', 'WITH.DOT': '1' },
    );
    await runtime.run(task, output, never);
    const names = output
      .text()
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0]);
    const given = ['PATH', 'DECLARED', 'WITH.DOT', 'MILLRACE_HANDOUT', 'MILLRACE_RESULT'];
    const allowed = new Set([...given, 'HOME', 'LANG', 'TZ', 'TMPDIR']);
    expect(names).toEqual(expect.arrayContaining(given));
    expect(names.filter((name) => !allowed.has(name ?? ''))).toEqual([]);
  });
});

describe('results of processes', () => {
  it('the result is the JSON that a process writes to the file MILLRACE_RESULT', async () => {
    expect(await run(`printf '{"a":1}' > "$MILLRACE_RESULT"`)).toMatchObject({ state: 'success', result: '{"a":1}' });
    expect(await run('true')).not.toHaveProperty('result');
  });

  it.each([
    ['text that is not JSON', 'echo no > "$MILLRACE_RESULT"', /^its result is not JSON/],
    ['too many bytes', 'head -c 300000 /dev/zero > "$MILLRACE_RESULT"', /^its result has 300000 bytes/],
    ['a link', 'rm "$MILLRACE_RESULT"; ln -s /etc/hostname "$MILLRACE_RESULT"', /^its result cannot be read/],
    ['a pipe', 'rm "$MILLRACE_RESULT"; mkfifo "$MILLRACE_RESULT"', /is not a regular file$/],
  ])('a result is not stored if it is %s', async (_, script, unkept) => {
    const outcome = await run(script);
    expect(outcome).toMatchObject({ state: 'success', unkept: expect.stringMatching(unkept) as string });
    expect(outcome).not.toHaveProperty('result');
  });
});

describe('output', () => {
  it('output has every byte, valid UTF-8 or not', async () => {
    const output = new Recorder();
    await run(String.raw`printf '\377\376\000\200a\303'`, output);
    expect(output.bytes('out')).toEqual(Buffer.from([0xff, 0xfe, 0, 0x80, 0x61, 0xc3]));
  });

  it('output is complete if the process has ended before any of it was read', async () => {
    const output = new Recorder();
    await run('printf %65000s x; exit 0', output);
    expect(output.bytes('out').length).toBe(65_000);
  });

  it('output may be written through /dev/stdout and /dev/stderr', async () => {
    const output = new Recorder();
    expect(await run('echo a > /dev/stdout; echo b > /dev/stderr', output)).toMatchObject({ state: 'success' });
    expect(output.text()).toBe('a\nb\n');
  });

  it('output of both streams has the order in which it was written', async () => {
    const output = new Recorder();
    await run('i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); echo $i >&2; i=$((i+1)); done', output);
    expect(output.text()).toBe(Array.from({ length: 2_000 }, (_, i) => `${i}\n`).join(''));
  });

  it('a line of 100 MB is complete', async () => {
    let bytes = 0;
    const outcome = await run("head -c 100000000 /dev/zero | tr '\\0' x", {
      write: (_, data) => void (bytes += data.length),
    });
    expect([outcome.state, bytes]).toEqual(['success', 100_000_000]);
  });

  it('output that is closed early does not end the run', async () => {
    const marker = join(folder, 'went-on');
    expect(await run(`exec >&- 2>&-; sleep 0.1; : > ${marker}; exit 4`)).toMatchObject({ exitCode: 4 });
    expect(existsSync(marker)).toBe(true);
  });

  it('output is not read while the sink is full, so the task is slowed down and memory stays limited', async () => {
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let taken = 0;
    const counter = join(folder, 'progress');
    const running = run(
      `i=0; while [ $i -lt 64 ]; do head -c 65536 /dev/zero; i=$((i+1)); echo $i > ${counter}; done`,
      { write: (_, data) => ((taken += data.length), gate) },
    );
    const stuckAt = await stable(async () => await readFile(counter, 'utf8').catch(() => ''));
    expect(Number(stuckAt)).toBeLessThan(16);
    expect(taken).toBeLessThan(1024 * 1024);
    release();
    expect(await running).toMatchObject({ state: 'success' });
    expect(taken).toBe(64 * 65_536);
  });

  it('output of 1 GB does not grow the worker', async () => {
    let bytes = 0;
    const before = process.memoryUsage.rss();
    let highest = before;
    const outcome = await run('head -c 1000000000 /dev/zero', {
      write: (_, data) => {
        bytes += data.length;
        highest = Math.max(highest, process.memoryUsage.rss());
        return undefined;
      },
    });
    expect(outcome.state).toBe('success');
    expect(bytes).toBe(1_000_000_000);
    expect(highest - before).toBeLessThan(150 * 1024 * 1024);
  });

  it('output that a grandchild holds open is awaited only briefly', async () => {
    const startedAt = performance.now();
    const output = new Recorder();
    expect(await run('setsid sleep 5 & echo done', output)).toMatchObject({ state: 'success' });
    expect(output.text()).toBe('done\n');
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});

/** A value once it has been the same for twenty reads in a row, and not empty. */
async function stable(look: () => Promise<string>): Promise<string> {
  let last = '';
  let same = 0;
  return await vi.waitFor(async () => {
    const value = await look();
    same = value === last ? same + 1 : 0;
    last = value;
    expect(value).not.toBe('');
    expect(same).toBeGreaterThan(20);
    return value;
  }, patience);
}

describe('kills', () => {
  const forks = (file: string, before = ''): string =>
    `${before} for i in 1 2 3; do (sh -c 'echo $$ >> ${file}; sleep 60' & sh -c 'echo $$ >> ${file}; sleep 61') & done; wait`;

  it('a kill ends the whole group, however much the task forked', async () => {
    const control = new AbortController();
    const running = run(forks('forked'), new Recorder(), control.signal);
    const pids = await pidsIn('forked', 6);
    control.abort('timeout');
    expect(await running).toMatchObject({ state: 'failure' });
    await allDead(pids);
  });

  it('processes that ignore SIGTERM are killed after the grace, even if the leader obeyed', async () => {
    const control = new AbortController();
    const stubborn = `sh -c 'trap "" TERM; echo $$ >> stubborn; while :; do sleep 0.05; done' & exec sleep 60`;
    const running = run(stubborn, new Recorder(), control.signal);
    const pids = await pidsIn('stubborn', 1);
    const killedAt = performance.now();
    control.abort('cancelled');
    await running;
    expect(performance.now() - killedAt).toBeGreaterThanOrEqual(990);
    await allDead(pids);
  });

  it('a child has its grace even if the leader ended at once', async () => {
    const control = new AbortController();
    const tidy = `sh -c 'trap "sleep 0.15; echo tidied > tidy; exit" TERM; echo $$ >> tidying; while :; do sleep 0.02; done' & wait`;
    const running = run(tidy, new Recorder(), control.signal, patient);
    await pidsIn('tidying', 1);
    control.abort('cancelled');
    await running;
    expect(await readFile(join(folder, 'tidy'), 'utf8')).toBe('tidied\n');
  });

  it('a kill reaches a stopped process', async () => {
    const control = new AbortController();
    const running = run('echo $$ > stopped; kill -STOP $$', new Recorder(), control.signal);
    const pids = await pidsIn('stopped', 1);
    control.abort('cancelled');
    await running;
    await allDead(pids);
  });

  const sleeper = (file: string): string => `sh -c 'echo $$ >> ${file}; exec sleep 60'`;

  it.runIf(process.platform === 'linux').each([
    ['a session of its own', 'left', `setsid ${sleeper('left')} & wait`],
    ['a daemon, forked twice', 'daemon', `(setsid sh -c "${sleeper('daemon')} &" &) ; exec sleep 60`],
    ['a group of its own', 'grouped', `set -m; ${sleeper('grouped')} & wait`],
    ['the same without our environment', 'bare', `set -m; env -i PATH="$PATH" ${sleeper('bare')} & wait`],
  ])('a kill reaches a process that left for %s', async (_, file, script) => {
    const control = new AbortController();
    const running = run(script, new Recorder(), control.signal);
    const pids = await pidsIn(file, 1);
    control.abort('cancelled');
    await running;
    await allDead(pids);
  });

  it.runIf(process.platform === 'linux')('a kill is soft first for processes that left the group', async () => {
    const control = new AbortController();
    const tidy = `setsid sh -c 'trap "echo tidied > tidied; exit" TERM; echo $$ >> stray; while :; do sleep 0.02; done' & wait`;
    const running = run(tidy, new Recorder(), control.signal, patient);
    const pids = await pidsIn('stray', 1);
    control.abort('cancelled');
    await running;
    await allDead(pids);
    expect(await readFile(join(folder, 'tidied'), 'utf8')).toBe('tidied\n');
  });
});

/** Leaves a process behind, and ends once that process has begun. */
const leaving = (file: string, how = ''): string =>
  `${how} sh -c 'echo $$ >> ${file}; exec sleep 60' >/dev/null 2>&1 & until [ -s ${file} ]; do sleep 0.01; done`;

it('processes that the main process leaves in its group end with the run', async () => {
  expect(await run(leaving('behind'))).toMatchObject({ state: 'success' });
  await allDead(await pidsIn('behind', 1));
});

it.runIf(process.platform === 'linux')(
  'processes that the main process leaves in another group of its session end with the run',
  async () => {
    expect(await run(leaving('job', 'set -m;'))).toMatchObject({ state: 'success' });
    await allDead(await pidsIn('job', 1));
  },
);

it('a process that left both group and session outlives the run', async () => {
  expect(await run(leaving('free', 'setsid'))).toMatchObject({ state: 'success' });
  const [pid = 0] = await pidsIn('free', 1);
  expect(isProcessRunning(pid)).toBe(true);
  process.kill(pid, 'SIGKILL');
});

it('the runtime continues after its temporary files were removed', async () => {
  const own = await mkdtemp(join(folder, 'tidy-'));
  vi.stubEnv('TMPDIR', own);
  const other = processRuntime({ environment: process.env });
  const task = (): Promise<Outcome> =>
    other.run(makeTask({ kind: 'process', command: ['true'], cwd: null }), new Recorder(), never);
  expect(await task()).toMatchObject({ state: 'success' });
  for (const name of await readdir(own)) await rm(join(own, name), { recursive: true });
  for (const outcome of await Promise.all([task(), task(), task()])) expect(outcome.state).toBe('success');
  await other.service.stop();
  expect(await readdir(own)).toEqual([]);
  vi.unstubAllEnvs();
});

describe('death of the worker', () => {
  const children: ChildProcess[] = [];
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  let built: string;
  beforeAll(async () => {
    built = await bundleModule('runtimes/process/process.ts');
  });
  afterAll(() => rm(dirname(built), { recursive: true, force: true }));

  /** Runs the runtime in a separate process. */
  function worker(script: string): ChildProcess {
    const source = `
      const { processRuntime } = await import(${JSON.stringify(built)});
      const runtime = processRuntime({ environment: process.env, orphanGraceMs: 300 });
      await runtime.service.start();
      const facts = { run: crypto.randomUUID(), lease: 1 };
      const work = { kind: 'process', command: ['/bin/sh', '-c', ${JSON.stringify(script)}], cwd: ${JSON.stringify(folder)} };
      await runtime.run({ work, env: {}, facts }, { write() {} }, new AbortController().signal);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    children.push(child);
    return child;
  }

  it('all tasks of a worker end after kill -9, even those that ignore SIGTERM or left the group (I4)', async () => {
    const pid = (trap: string): string => `sh -c '${trap} echo $$ >> orphans; while :; do sleep 0.05; done'`;
    const bare = `set -m; env -i PATH="$PATH" ${pid('')} &`;
    const dying = worker(`${pid('')} & ${pid('trap "" TERM;')} & setsid ${pid('')} & ${bare} echo $$ >> orphans; wait`);
    const pids = await pidsIn('orphans', 5);
    expect(pids.map(isProcessRunning)).toEqual(pids.map(() => true));
    dying.kill('SIGKILL');
    await once(dying, 'exit');
    await allDead(pids);
  });

  it('a worker that dies leaves no folder of pipes behind', async () => {
    const own = await mkdtemp(join(folder, 'tmp-'));
    const before = process.env['TMPDIR'];
    process.env['TMPDIR'] = own;
    const dying = worker('echo $$ >> quiet; exec sleep 60');
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    const pids = await pidsIn('quiet', 1);
    expect(await readdir(own)).toHaveLength(1);
    dying.kill('SIGKILL');
    await allDead(pids);
    await vi.waitFor(async () => expect(await readdir(own)).toEqual([]), patience);
  });
});
