import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { readProcessStat } from '../../kernel/process/process-stat.ts';
import { Watcher, type WatcherOptions } from './watcher.ts';

const patience = { timeout: 10_000, interval: 10 };
const children: ChildProcess[] = [];
const watchers: Watcher[] = [];

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const watcher of watchers.splice(0)) await watcher.stop();
});

async function start(more: Partial<WatcherOptions> = {}): Promise<Watcher> {
  const watcher = new Watcher({ graceMs: 300, folder: '/nonexistent/millrace', path: '/usr/bin:/bin', ...more });
  watchers.push(watcher);
  await watcher.start();
  return watcher;
}

/**
 * A mark that no other test uses. A watcher continues for a while after its test, and ends every process on this machine that has
 * one of its marks, including those of a later test and of another run of this suite.
 */
function makeMark(): string {
  return `1.${randomUUID()}`;
}

/** A process group that is not ours, with its id. */
function sleeper(mark: string): ChildProcess & { readonly pid: number } {
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore', env: { MILLRACE_HANDOUT: mark } });
  children.push(child);
  const { pid } = child;
  if (pid === undefined) throw new Error('sleep did not start');
  return Object.assign(child, { pid });
}

it('the watcher ends open tasks when its pipe closes, and not those that have ended', async () => {
  const watcher = await start();
  const [open, ended, unused] = [makeMark(), makeMark(), makeMark()];
  const [left, reported, unseen] = [sleeper(open), sleeper(ended), sleeper(`1${unused}`)];
  watcher.announce(open);
  watcher.began(open, left.pid);
  watcher.announce(ended);
  watcher.began(ended, reported.pid);
  watcher.ended(ended);
  watcher.announce(unused);
  const gone = once(left, 'exit');
  await watcher.stop();
  expect(await gone).toEqual([null, 'SIGTERM']);
  expect([reported.exitCode, reported.signalCode, unseen.signalCode]).toEqual([null, null, null]);
});

it.runIf(process.platform === 'linux')('the watcher finds a task that was announced without its group', async () => {
  const watcher = await start();
  const mark = makeMark();
  watcher.announce(mark);
  const gone = once(sleeper(mark), 'exit');
  await watcher.stop();
  expect(await gone).toEqual([null, 'SIGTERM']);
});

it('a killed watcher is replaced, and its successor knows the open tasks', async () => {
  const watcher = await start();
  const first = watcher.pid ?? 0;
  const mark = makeMark();
  const task = sleeper(mark);
  watcher.announce(mark);
  watcher.began(mark, task.pid);
  process.kill(first, 'SIGKILL');
  await vi.waitFor(() => expect(watcher.pid).not.toBe(first), patience);
  const gone = once(task, 'exit');
  await watcher.stop();
  expect(await gone).toEqual([null, 'SIGTERM']);
});

describe('watchers that end at once', () => {
  let folder = '';
  let shell = '';
  let logged: string[] = [];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-watcher-'));
    shell = join(folder, 'shell');
    logged = [];
  });
  // a watcher that is stopped starts a last shell, which may write into the folder while it is removed
  afterEach(() => rm(folder, { recursive: true, maxRetries: 10 }));

  /** Starts with a shell that only runs this script. */
  async function startWith(script: string): Promise<Watcher> {
    await writeFile(shell, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return start({ shell, log: pino({ level: 'warn' }, { write: (line) => void logged.push(line) }) });
  }

  function watched(watcher: Watcher): ChildProcess {
    const mark = makeMark();
    const task = sleeper(mark);
    watcher.announce(mark);
    watcher.began(mark, task.pid);
    return task;
  }

  it('a watcher that ends at once is replaced with growing pauses, and logged once', async () => {
    const tries = join(folder, 'tries');
    const beganAt = performance.now();
    await startWith(`printf x >> ${tries}; exit 3`);
    await vi.waitFor(async () => expect((await readFile(tries, 'utf8')).length).toBeGreaterThan(5), patience);
    // pauses of at least 25, 50, 100, 200 and 400 ms
    expect(performance.now() - beganAt).toBeGreaterThan(775);
    expect(logged).toHaveLength(1);
    expect(logged[0]).toContain('exit code 3');
  });

  it.each([
    ['by one that starts', async (watcher: Watcher) => vi.waitFor(() => expect(watcher.pid).toBeDefined(), patience)],
    ['even if it is stopped meanwhile', async () => {}],
  ])('a watcher that cannot be started is replaced %s, and open tasks end', async (_, wait) => {
    const watcher = await startWith('rm -- "$0"');
    const gone = once(watched(watcher), 'exit');
    await vi.waitFor(() => expect(logged.join()).toContain('ENOENT'), patience);
    await symlink('/bin/sh', shell);
    await wait(watcher);
    await watcher.stop();
    expect(await gone).toEqual([null, 'SIGTERM']);
  });
});

it.runIf(process.platform === 'linux')(
  'the watcher ignores soft signals, leads its own session and is small',
  async () => {
    const watcher = await start();
    const pid = watcher.pid ?? 0;
    // the shell is running once its trap shows: SIGTERM is bit 14 of the ignored signals
    await vi.waitFor(async () => expect(await ignores(pid)).toBe(true), patience);
    process.kill(pid, 'SIGTERM');
    expect(readProcessStat(pid)?.session).toBe(pid);
    const pss = /^Pss:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1];
    expect(Number(pss)).toBeLessThan(2_000);
  },
);

async function ignores(pid: number): Promise<boolean> {
  const mask = /^SigIgn:\s+([0-9a-f]+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0';
  return (Number.parseInt(mask.slice(-8), 16) & (1 << 14)) !== 0;
}
