import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { makeTask, Recorder } from '../../../test/conformance/task.ts';
import { bundleModule } from '../../../test/harness/bundled.ts';
import { textWith } from '../../../test/harness/expected.ts';
import { isProcessRunning } from '../../kernel/process/process-stat.ts';
import type { Outcome, Output } from '../contract.ts';
import { type FunctionFileOptions, functionProcesses } from './processes.ts';

const source = `
  import { spawn } from 'node:child_process';
  import { writeSync } from 'node:fs';
  export const pid = (_, { log }) => log(String(process.pid));
  export const facts = (input, { instant, run, attempt, params, credential, log }) =>
    log(JSON.stringify({ input, instant: instant instanceof Date, run, attempt, params, credential }));
  export const environment = (_, { log }) => log(Object.keys(process.env).sort().join(' '));
  export const prints = async (_, { log }) => {
    log('one'); console.log('two'); console.error('three'); process.stdout.write('four\\n');
    await null; console.log('five'); log('six');
  };
  export const binary = () => process.stdout.write(Buffer.from([0xff, 0, 0xfe]));
  export const throws = () => { throw new TypeError('broken'); };
  export const late = () => { setTimeout(() => { throw new Error('too late'); }, 20); return new Promise(() => {}); };
  export const forgets = () => { Promise.reject(new Error('forgotten')); return new Promise(() => {}); };
  export const leaves = (_, { log }) => { log('last words'); process.exit(7); };
  export const spins = (_, { log }) => { log('spinning ' + process.pid); for (;;); };
  export const stuck = (_, { log }) => { log('stuck'); return new Promise(() => {}); };
  export const obeys = (_, { log, signal }) => new Promise((done) => {
    signal.addEventListener('abort', () => { log('why: ' + signal.reason); done(); });
    log('waiting');
  });
  export const fills = () => { const all = []; for (;;) all.push(new Array(1e6).fill(all.length)); };
  export const huge = () => 'x'.repeat(400_000_000);
  export const lies = () => { writeSync(3, 'not a word\\n'); return new Promise(() => {}); };
  const nested = (bytes) => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2);
  const written = (text) => { for (let at = 0; at < text.length; ) at += writeSync(3, text.slice(at, at + 65_536)); };
  export const nests = () => { written('{"end":' + nested(7_000_000) + '}\\n'); return new Promise(() => {}); };
  export const forges = (_, { log }) => {
    log(String(process.pid));
    setTimeout(() => written('{"end":"success","reason":"forged"}\\n'), 50);
  };
  export const floods = (_, { log }) => {
    log(String(process.pid));
    setTimeout(() => { for (;;) written('{"print":"eA==","stream":"out"}\\n'); }, 50);
  };
  export const pollutes = () => { Object.defineProperty(Object.prototype, 'stolen', { get: () => 'yes' }); };
  export const steals = (_, { log }) => log(String({}.stolen));
  export const shouts = () => { const line = 'x'.repeat(99_999) + '\\n'; for (let i = 0; i < 500; i++) process.stdout.write(line); };
  export const forks = (_, { log }) => { const child = spawn('sleep', ['60'], { stdio: 'ignore' }); log(String(child.pid)); return new Promise(() => {}); };
  export const lingers = (_, { log }) => { const timer = setInterval(() => { log('beyond'); console.log('a late word'); }, 50); setTimeout(() => clearInterval(timer), 120); };
  export const generates = () => (async function* () { yield 1; })();
  export const waits = (ms) => new Promise((done) => setTimeout(done, ms));
  export const blames = (_, { credential }) => { throw new Error('x'.repeat(3_990) + credential); };
  export const rambles = () => { throw new Error('x'.repeat(20_000_000)); };
  export const chats = (lines, { log }) => { for (let i = 0; i < lines; i++) log('x'); };
  let poked = false;
  const failure = () => new Error('left behind');
  export const leavesTimer = (_, { log }) => {
    const timer = setInterval(() => { if (poked) { clearInterval(timer); throw failure(); } }, 5);
    log(String(process.pid));
  };
  export const leavesPromise = (_, { log }) => {
    (async () => { while (!poked) await waits(5); throw failure(); })();
    log(String(process.pid));
  };
  export const pokes = async (_, { log }) => {
    const thrown = new Promise((done) => process.once('uncaughtException', done));
    poked = true;
    await thrown;
    log(String(process.pid));
  };
`;

const never = new AbortController().signal;
const patience = { timeout: 10_000, interval: 5 };
const runtimes: ReturnType<typeof functionProcesses>[] = [];
let folder = '';
let program = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-functions-'));
  await writeFile(join(folder, 'functions.mjs'), source);
  program = await bundleModule('runtimes/function/host.ts');
});
afterEach(async () => {
  await Promise.all(runtimes.splice(0).map((each) => each.service.stop()));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
  await rm(dirname(program), { recursive: true });
});

function make(options: Partial<FunctionFileOptions> = {}): ReturnType<typeof functionProcesses> {
  const file = join(folder, 'functions.mjs');
  const made = functionProcesses({ file, program, environment: process.env, graceMs: 300, ...options });
  runtimes.push(made);
  return made;
}

function call(
  runtime: ReturnType<typeof functionProcesses>,
  name: string,
  how: { input?: unknown; output?: Output; signal?: AbortSignal } = {},
): Promise<Outcome> {
  const { input = null, output = new Recorder(), signal = never } = how;
  return runtime.run(makeTask({ kind: 'function', name, input }), output, signal);
}

async function printed(runtime: ReturnType<typeof functionProcesses>, name: string): Promise<string> {
  const output = new Recorder();
  expect(await call(runtime, name, { output })).toEqual({ state: 'success', exitCode: null, reason: null });
  return output.text();
}

describe('functions of a file', () => {
  it('a function is called with its input and the facts of its run', async () => {
    const output = new Recorder();
    const task = makeTask({ kind: 'function', name: 'facts', input: { a: [1] } });
    expect(await make().run(task, output, never)).toMatchObject({ state: 'success' });
    const { run, attempt, params, credential } = task.facts;
    expect(JSON.parse(output.text())).toEqual({ input: { a: [1] }, instant: true, run, attempt, params, credential });
  });

  it('a function sees the environment of its worker, but none of the settings of Millrace', async () => {
    const keys = { MILLRACE_KEY: 'k', MILLRACE_ROOT_KEY: 'r', MILLRACE_SECRET_KEY: 's' };
    const settings = { MILLRACE_DATABASE_URL: 'postgres://u:p@db/x', MILLRACE_URL: 'http://x', MILLRACE_LATER: 'y' };
    const environment = { PATH: '/bin', MINE: 'x', ...keys, ...settings };
    const names = (await printed(make({ environment }), 'environment')).trim();
    expect(names.split(' ').sort()).toEqual(['MILLRACE_HANDOUT', 'MINE', 'PATH']);
  });

  it('all output of a function is in its log, in order and byte for byte', async () => {
    const runtime = make();
    expect(await printed(runtime, 'prints')).toBe('one\ntwo\nthree\nfour\nfive\nsix\n');
    const output = new Recorder();
    await call(runtime, 'binary', { output });
    expect(output.bytes()).toEqual(Buffer.from([0xff, 0, 0xfe]));
  });

  it('a function that throws has failed, with its stack in the log', async () => {
    const output = new Recorder();
    expect(await call(make(), 'throws', { output })).toMatchObject({ state: 'failure', reason: 'broken' });
    expect(output.text('err')).toMatch(/^TypeError: broken\n\s+at /);
  });

  it('a long error message is sent completely, so that a secret in it can be masked before it is cut', async () => {
    const runtime = make();
    const task = makeTask({ kind: 'function', name: 'blames', input: null });
    const { reason } = await runtime.run(task, new Recorder(), never);
    expect(reason).toBe('x'.repeat(3_990) + task.facts.credential);
    const far = await call(runtime, 'rambles', { output: { write: () => undefined } });
    expect(far).toMatchObject({ state: 'failure', reason: 'its message has 20000000 characters; see the log' });
  });

  it('a function that does not exist, or is a generator, is an error', async () => {
    const runtime = make();
    for (const name of ['nobody', 'constructor', '__proto__']) {
      expect(await call(runtime, name)).toMatchObject({ state: 'error' });
    }
    expect((await call(runtime, 'nobody')).reason).toContain('"environment", "facts"');
    expect((await call(runtime, 'generates')).reason).toContain('generator');
  });

  it('a function may return a huge value, which is not transferred', async () => {
    const before = process.memoryUsage.rss();
    expect(await call(make(), 'huge')).toMatchObject({ state: 'success' });
    expect(process.memoryUsage.rss() - before).toBeLessThan(100 * 1024 * 1024);
  });

  it('a function that has returned writes nothing to the log of the next run', async () => {
    const runtime = make();
    await printed(runtime, 'lingers');
    expect(await call(runtime, 'waits', { input: 100, output: { write: () => expect.unreachable() } })).toMatchObject({
      state: 'success',
    });
  });
});

describe('processes of functions', () => {
  it('a process is reused, by one call at a time; idle processes end, except one', async () => {
    const runtime = make({ idleMs: 100 });
    await runtime.service.start();
    const first = await printed(runtime, 'pid');
    expect(await printed(runtime, 'pid')).toBe(first);
    const many = await Promise.all([printed(runtime, 'pid'), printed(runtime, 'pid'), printed(runtime, 'pid')]);
    expect(new Set(many).size).toBe(3);
    await vi.waitFor(async () => {
      const alive = many.map((pid) => isProcessRunning(Number(pid)));
      expect(alive.filter(Boolean)).toHaveLength(1);
    }, patience);
    expect(many).toContain(await printed(runtime, 'pid'));
  });

  it.each([
    ['spins', 'never yields'],
    ['stuck', 'never returns'],
    ['forks', 'has forked'],
  ])('a process is killed if the function (%s: it %s) does not end within the grace', async (name) => {
    const runtime = make();
    const control = new AbortController();
    const output = new Recorder();
    const running = call(runtime, name, { output, signal: control.signal });
    await vi.waitFor(() => expect(output.text()).toMatch(/\n/), patience);
    const [pid] = /\d+/.exec(output.text()) ?? [];
    control.abort('timeout');
    expect(await running).toMatchObject({ state: 'failure', reason: expect.stringContaining('300 ms') as string });
    if (pid !== undefined) await vi.waitFor(() => expect(isProcessRunning(Number(pid))).toBe(false), patience);
    expect(await call(runtime, 'waits', { input: 1 })).toMatchObject({ state: 'success' });
  });

  it('a process continues if the function obeys its signal, which has the reason', async () => {
    const runtime = make();
    const control = new AbortController();
    const output = new Recorder();
    const running = call(runtime, 'obeys', { output, signal: control.signal });
    await vi.waitFor(() => expect(output.text()).toContain('waiting'), patience);
    control.abort('cancelled');
    expect(await running).toMatchObject({ state: 'success' });
    expect(output.text()).toBe('waiting\nwhy: cancelled\n');
  });

  it.each([
    ['leaves', /exit code 7/],
    ['late', /too late/],
    ['forgets', /forgotten/],
    ['lies', /an invalid message/],
  ])('a process that ends (%s) affects only its own run', async (name, reason) => {
    const runtime = make();
    const output = new Recorder();
    const others = [call(runtime, 'waits', { input: 300 }), call(runtime, 'waits', { input: 300 })];
    const outcome = await call(runtime, name, { output });
    expect(outcome.state).toBe('failure');
    expect(outcome.reason).toMatch(reason);
    if (name === 'leaves') expect(output.text()).toBe('last words\n');
    expect(await call(runtime, 'pid')).toMatchObject({ state: 'success' });
    for (const other of await Promise.all(others)) expect(other.state).toBe('success');
    expect(await call(runtime, 'waits', { input: 1 })).toMatchObject({ state: 'success' });
  });

  it.each(['leavesTimer', 'leavesPromise'])(
    'a process ends after an exception of an earlier call (%s), but not before its present call has ended',
    async (name) => {
      const runtime = make();
      const first = await printed(runtime, name);
      expect(await printed(runtime, 'pokes')).toBe(first);
      expect(await printed(runtime, 'pid')).not.toBe(first);
      await vi.waitFor(() => expect(isProcessRunning(Number(first))).toBe(false), patience);
    },
  );

  it('a stop reaches the process at any moment, or the call never begins', async () => {
    const runtime = make();
    await runtime.service.start();
    for (let turns = 0; turns < 20; turns++) {
      const control = new AbortController();
      const running = call(runtime, 'obeys', { signal: control.signal });
      for (let i = 0; i < turns; i++) await Promise.resolve();
      control.abort('cancelled');
      expect((await running).reason).toBeOneOf([null, 'it was stopped before it began']);
    }
  });

  it('a process that fills its memory ends alone', async () => {
    const runtime = make({ environment: { ...process.env, NODE_OPTIONS: '--max-old-space-size=64' } });
    const outcome = await call(runtime, 'fills');
    expect(outcome.state).toBe('failure');
    expect(outcome.reason).toContain('short of memory');
  });

  it('a process is slowed down while its output is not accepted, and memory stays limited', async () => {
    let [taken, untaken, most] = [0, 0, 0];
    let slow: Promise<void> | undefined;
    const output: Output = {
      write: async (_, { length }) => {
        most = Math.max(most, (untaken += length));
        // the first one takes long enough for all the others to arrive
        await (slow ??= new Promise((resolve) => setTimeout(resolve, 2_000)));
        await new Promise((resolve) => setImmediate(resolve));
        untaken -= length;
        taken += length;
      },
    };
    expect(await call(make(), 'shouts', { output })).toMatchObject({ state: 'success' });
    await vi.waitFor(() => expect(taken).toBe(50_000_000), patience);
    // only a few reads of the 50 MB
    expect(most).toBeLessThan(1_000_000);
  });

  it('a process is slowed down until the last print is accepted, not the first', async () => {
    let [untaken, most] = [0, 0];
    let isFirst = true;
    let slow: Promise<void> | undefined;
    const output: Output = {
      write: async () => {
        slow ??= new Promise((resolve) => setTimeout(resolve, 1_000));
        most = Math.max(most, ++untaken);
        // the first of several prints is accepted at once
        if (!isFirst) await slow;
        isFirst = false;
        queueMicrotask(() => (isFirst = true));
        untaken--;
      },
    };
    expect(await call(make(), 'chats', { input: 50_000, output })).toMatchObject({ state: 'success' });
    // the content of one read: 64 KiB, with 32 bytes or more for each print
    expect(most).toBeLessThanOrEqual(2_048);
  });

  it('a process that sends nested JSON is killed before the JSON is parsed', async () => {
    const parse = vi.spyOn(JSON, 'parse');
    const outcome = await call(make(), 'nests');
    const isParsed = parse.mock.calls.some(([text]) => text.length > 1_000_000);
    parse.mockRestore();
    expect(outcome).toMatchObject({ state: 'failure', reason: textWith('sent an invalid message') });
    expect(isParsed).toBe(false);
  });

  it.each(['forges', 'floods'])('a process that %s messages after the end of its call is killed', async (name) => {
    const runtime = make();
    const pid = Number(await printed(runtime, name));
    await vi.waitFor(() => expect(isProcessRunning(pid)).toBe(false), patience);
    expect(Number(await printed(runtime, 'pid'))).not.toBe(pid);
  });

  it('a process is reused by runs of one tenant only', async () => {
    const runtime = make();
    const outcome = async (tenant: string, name: string): Promise<string> => {
      const output = new Recorder();
      const task = makeTask({ kind: 'function', name, input: null });
      await runtime.run({ ...task, facts: { ...task.facts, tenant } }, output, never);
      return output.text().trim();
    };
    await outcome('a', 'pollutes');
    expect([await outcome('a', 'steals'), await outcome('b', 'steals')]).toEqual(['yes', 'undefined']);
    expect(await outcome('a', 'steals')).toBe('yes');
  });

  it('a process ends with the service', async () => {
    const runtime = make();
    const pid = Number(await printed(runtime, 'pid'));
    await runtime.service.stop();
    await vi.waitFor(() => expect(isProcessRunning(pid)).toBe(false), patience);
  });
});

it.each([
  ['broken.mjs', 'export const = 1', /broken\.mjs cannot be used/],
  ['ends.mjs', 'process.exit(3)', /exit code 3 while it loaded/],
  ['waits.mjs', 'await new Promise(() => setInterval(() => {}, 1_000));', /did not load them within 500 ms/],
])('a file that cannot be used (%s) is rejected when the service starts', async (name, text, reason) => {
  await writeFile(join(folder, name), text);
  const runtime = make({ file: join(folder, name), loadMs: name === 'waits.mjs' ? 500 : 60_000 });
  await expect(runtime.service.start()).rejects.toThrow(reason);
  expect(await call(runtime, 'pid')).toMatchObject({ state: 'error' });
});

it('a run that is stopped while its functions are loading does not wait for them', async () => {
  await writeFile(
    join(folder, 'slow.mjs'),
    'await new Promise(() => setInterval(() => {}, 1_000)); export const f = () => 1;',
  );
  const control = new AbortController();
  const running = call(make({ file: join(folder, 'slow.mjs') }), 'f', { signal: control.signal });
  control.abort('cancelled');
  expect(await running).toMatchObject({ state: 'failure', reason: 'it was stopped before it began' });
});
