import { type ChildProcess, spawn } from 'node:child_process';
import { hostname } from 'node:os';
import { afterEach, describe, expect, it } from 'vitest';
import { silent } from '../kernel/log.ts';
import { within } from '../kernel/service.ts';
import { detachedHosts } from './host-processes.ts';

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** A process that does nothing, and looks like this command. */
function processOf(...command: readonly string[]): { pid: number; exit: Promise<string> } {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', ...command], { stdio: 'ignore' });
  children.push(child);
  const exit = new Promise<string>((resolve) => child.once('exit', (code, signal) => resolve(String(signal ?? code))));
  return { pid: child.pid ?? 0, exit };
}

const hosts = detachedHosts({ main: '/nowhere/main.js', log: silent, memoryMb: 64, env: {} }, () => {});

describe('a host that was written off', () => {
  it('is killed by its pid', async () => {
    const { pid, exit } = processOf('/somewhere/dist/main.js', 'host', '--engine', '1.0.0');
    hosts.kill({ machine: hostname(), pid });
    expect(await exit).toBe('SIGKILL');
  });

  it.each([
    ['is of another machine', 'another', ['/somewhere/dist/main.js', 'host']],
    ['is another role by now', hostname(), ['/somewhere/dist/main.js', 'api']],
    ['is another program by now', hostname(), ['/usr/bin/ssh', 'host']],
  ])('is left alone when its pid %s', async (_, machine, command) => {
    const { pid, exit } = processOf(...command);
    hosts.kill({ machine, pid });
    expect(await within(300, exit)).toBeUndefined();
  });

  it('is not missed when it is gone by now', async () => {
    const { pid, exit } = processOf('/somewhere/dist/main.js', 'host');
    process.kill(pid, 'SIGKILL');
    await exit;
    hosts.kill({ machine: hostname(), pid });
  });
});

it('a host that ends is told of at once', async () => {
  const pids: number[] = [];
  const ended = new Promise<void>((resolve) => {
    const watched = detachedHosts({ main: '/nowhere/main.js', log: silent, memoryMb: 64, env: {} }, (pid) => {
      pids.push(pid);
      resolve();
    });
    watched.spawn('1.0.0');
  });
  await ended;
  expect(pids).toEqual([expect.any(Number)]);
});
