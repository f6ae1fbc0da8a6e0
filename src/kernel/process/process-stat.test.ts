import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { isProcessRunning, parseProcessStat, readProcessStat } from './process-stat.ts';

/** A line as Linux writes it: 52 fields. Each field that has no value here holds its own number. */
function makeStat(name: string, state: string): string {
  const rest = Array.from({ length: 49 }, (_, i) => i + 4);
  return `1 (${name}) ${state} ${rest.join(' ')}\n`;
}

describe('parseProcessStat', () => {
  it.each(['node', 'tmux: server', ') Z 1 (', 'a) Z', ''])('the fields follow the name %j', (name) => {
    expect(parseProcessStat(makeStat(name, 'S'))).toEqual({
      hasEnded: false,
      parent: 4,
      group: 5,
      session: 6,
      processorMs: (14 + 15) * 10,
      startedMs: 220,
      environment: { start: 50, end: 51 },
    });
  });

  it.each([
    ['R', false],
    ['D', false],
    ['T', false],
    ['Z', true],
    ['X', true],
  ])('a process in state %s has ended: %j', (state, hasEnded) => {
    expect(parseProcessStat(makeStat('sh', state))?.hasEnded).toBe(hasEnded);
  });

  it('an empty text is not a process', () => {
    expect(parseProcessStat('')).toBeUndefined();
  });
});

it('a process runs until it has ended', async () => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  const pid = child.pid ?? 0;
  expect(isProcessRunning(pid)).toBe(true);
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
  expect(isProcessRunning(pid)).toBe(false);
});

it('this process runs, and so does a process of another user', () => {
  expect([isProcessRunning(process.pid), isProcessRunning(1)]).toEqual([true, true]);
});

describe.runIf(process.platform === 'linux')('Linux', () => {
  it('a zombie process does not count as running', async () => {
    // the shell starts a child, prints its number, and becomes a program that does not wait for children
    const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] });
    try {
      const [printed] = (await once(parent.stdout, 'data')) as [Buffer];
      const pid = Number(printed.toString());
      await vi.waitFor(
        () => expect(readProcessStat(pid)).toMatchObject({ hasEnded: true, parent: parent.pid }),
        10_000,
      );
      expect(isProcessRunning(pid)).toBe(false);
    } finally {
      parent.kill('SIGKILL');
    }
  });

  it('a process whose name has spaces and parentheses is parsed correctly', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-stat-'));
    const program = join(folder, 'a) Z (b');
    copyFileSync('/bin/sleep', program);
    const child = spawn(program, ['60'], { stdio: 'ignore', detached: true });
    try {
      const { pid } = child;
      expect(readProcessStat(pid ?? 0)).toMatchObject({
        hasEnded: false,
        parent: process.pid,
        group: pid,
        session: pid,
      });
    } finally {
      child.kill('SIGKILL');
      rmSync(folder, { recursive: true });
    }
  });

  it('a process that does not exist has no stat', () => {
    // above the highest process number of Linux (2^22)
    expect([readProcessStat(2 ** 23), isProcessRunning(2 ** 23)]).toEqual([undefined, false]);
  });
});
