import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
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

/** A process group that is not ours, with its id. */
function sleeper(mark: string): ChildProcess & { readonly pid: number } {
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore', env: { MILLRACE_HANDOUT: mark } });
  children.push(child);
  const { pid } = child;
  if (pid === undefined) throw new Error('sleep did not start');
  return Object.assign(child, { pid });
}

it('ends what is open when its pipe closes, and leaves what was told to have ended', async () => {
  const watcher = await start();
  const [left, told, unseen] = [sleeper('1.a'), sleeper('1.b'), sleeper('11.c')];
  watcher.announce('1.a');
  watcher.began('1.a', left.pid);
  watcher.announce('1.b');
  watcher.began('1.b', told.pid);
  watcher.ended('1.b');
  watcher.announce('1.c');
  const gone = once(left, 'exit');
  await watcher.stop();
  expect(await gone).toEqual([null, 'SIGTERM']);
  expect([told.exitCode, told.signalCode, unseen.signalCode]).toEqual([null, null, null]);
});

it.runIf(process.platform === 'linux')(
  'finds a task that was announced but whose group it was never told',
  async () => {
    const watcher = await start();
    watcher.announce('1.early');
    const gone = once(sleeper('1.early'), 'exit');
    await watcher.stop();
    expect(await gone).toEqual([null, 'SIGTERM']);
  },
);

it('is replaced when somebody ends it, and the successor knows what is open', async () => {
  const watcher = await start();
  const first = watcher.pid ?? 0;
  const task = sleeper('1.kept');
  watcher.announce('1.kept');
  watcher.began('1.kept', task.pid);
  process.kill(first, 'SIGKILL');
  await vi.waitFor(() => expect(watcher.pid).not.toBe(first), patience);
  const gone = once(task, 'exit');
  await watcher.stop();
  expect(await gone).toEqual([null, 'SIGTERM']);
});

describe('one that does not stay', () => {
  let folder = '';
  let shell = '';
  let told: string[] = [];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-watcher-'));
    shell = join(folder, 'shell');
    told = [];
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** Starts with a shell that does only this. */
  async function startWith(script: string): Promise<Watcher> {
    await writeFile(shell, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return start({ shell, log: pino({ level: 'warn' }, { write: (line) => void told.push(line) }) });
  }

  function watched(watcher: Watcher): ChildProcess {
    const task = sleeper('1.unwatched');
    watcher.announce('1.unwatched');
    watcher.began('1.unwatched', task.pid);
    return task;
  }

  it('is followed by others ever more slowly, and that is told once', async () => {
    const tries = join(folder, 'tries');
    const beganAt = performance.now();
    await startWith(`printf x >> ${tries}; exit 3`);
    await vi.waitFor(async () => expect((await readFile(tries, 'utf8')).length).toBeGreaterThan(5), patience);
    // waits of at least 25, 50, 100, 200 and 400 ms
    expect(performance.now() - beganAt).toBeGreaterThan(775);
    expect(told).toHaveLength(1);
    expect(told[0]).toContain('exit code 3');
  });

  it.each([
    ['by one that can', async (watcher: Watcher) => vi.waitFor(() => expect(watcher.pid).toBeDefined(), patience)],
    ['even if it is let go meanwhile', async () => {}],
  ])('or cannot be started is followed %s, and what is open is ended', async (_, wait) => {
    const watcher = await startWith('rm -- "$0"');
    const gone = once(watched(watcher), 'exit');
    await vi.waitFor(() => expect(told.join()).toContain('ENOENT'), patience);
    await symlink('/bin/sh', shell);
    await wait(watcher);
    await watcher.stop();
    expect(await gone).toEqual([null, 'SIGTERM']);
  });
});

it.runIf(process.platform === 'linux')('ignores soft signals, leads its own session and is small', async () => {
  const watcher = await start();
  const pid = watcher.pid ?? 0;
  // the shell is there once its trap shows: SIGTERM is bit 14 of the ignored ones
  await vi.waitFor(async () => expect(await ignores(pid)).toBe(true), patience);
  process.kill(pid, 'SIGTERM');
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  expect(stat.split(') ')[1]?.split(' ')[3]).toBe(String(pid));
  const pss = /^Pss:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1];
  expect(Number(pss)).toBeLessThan(2_000);
});

async function ignores(pid: number): Promise<boolean> {
  const mask = /^SigIgn:\s+([0-9a-f]+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0';
  return (Number.parseInt(mask.slice(-8), 16) & (1 << 14)) !== 0;
}
