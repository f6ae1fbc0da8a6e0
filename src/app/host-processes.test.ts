import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { until } from '../../test/harness/until.ts';
import { type Log, silent } from '../kernel/log.ts';
import { machine } from '../kernel/process/machine.ts';
import { pause, within } from '../kernel/service.ts';
import { ChildHosts } from './child-hosts.ts';
import { detachedHosts } from './host-processes.ts';

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** A process that does nothing, with this command line. */
function processOf(...command: readonly string[]): { pid: number; exit: Promise<string> } {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', ...command], { stdio: 'ignore' });
  children.push(child);
  const exit = new Promise<string>((resolve) => child.once('exit', (code, signal) => resolve(String(signal ?? code))));
  return { pid: child.pid ?? 0, exit };
}

const hosts = detachedHosts({ main: '/nowhere/main.js', log: silent, memoryMb: 64, env: {} }, () => {});

describe('killHost', () => {
  it('a host is killed by its pid', async () => {
    const { pid, exit } = processOf('/somewhere/dist/main.js', 'host', '--engine', '1.0.0');
    hosts.kill({ machine, pid });
    expect(await exit).toBe('SIGKILL');
  });

  it.each([
    ['belongs to another machine', 'another', ['/somewhere/dist/main.js', 'host']],
    ['belongs to another role by now', machine, ['/somewhere/dist/main.js', 'api']],
    ['belongs to another program by now', machine, ['/usr/bin/ssh', 'host']],
  ])('no process is killed if the pid %s', async (_, where, command) => {
    const { pid, exit } = processOf(...command);
    hosts.kill({ machine: where, pid });
    expect(await within(300, exit)).toBeUndefined();
  });

  it('a host that started later and has the same pid is not killed', async () => {
    const { pid, exit } = processOf('/somewhere/dist/main.js', 'host');
    hosts.kill({ machine, pid, ageMs: 60_000 });
    expect(await within(300, exit)).toBeUndefined();
    hosts.kill({ machine, pid, ageMs: 200 });
    expect(await exit).toBe('SIGKILL');
  });

  it('killing a host that has ended already does nothing', async () => {
    const { pid, exit } = processOf('/somewhere/dist/main.js', 'host');
    process.kill(pid, 'SIGKILL');
    await exit;
    hosts.kill({ machine, pid });
  });
});

describe('detachedHosts', () => {
  it('a host is started with its engine, in a session of its own, and its end is reported', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-hosts-'));
    const main = join(folder, 'main.js');
    await writeFile(
      main,
      `const { writeFileSync } = require('node:fs'), { execSync } = require('node:child_process');
       const group = Number(execSync('ps -o pgid= -p ' + process.pid));
       writeFileSync(process.env.SEEN, JSON.stringify([process.argv.slice(2), process.execArgv, group === process.pid]));`,
    );
    const seen = join(folder, 'seen');
    const options = { main, log: silent, memoryMb: 64, env: { SEEN: seen } };
    const ended: number[] = [];
    const how = await new Promise<string>((resolve) => {
      const pid = detachedHosts(options, (gone) => ended.push(gone)).spawn('1.0.0', resolve);
      expect(pid).toBeGreaterThan(0);
      ended.push(pid ?? 0);
    });
    expect(how).toBe('exit 0');
    expect(ended[0]).toBe(ended[1]);
    expect(JSON.parse(await readFile(seen, 'utf8'))).toEqual([
      ['host', '--engine', '1.0.0', '--on-demand'],
      ['--max-old-space-size=128'],
      true,
    ]);
    await rm(folder, { recursive: true });
  });
});

describe('hosts that cannot be started', () => {
  const node = process.execPath;
  const faults: unknown[] = [];
  const log = { ...silent, error: (fields: { err?: unknown }) => void faults.push(fields.err) } as unknown as Log;
  const hostsWith = (env: Record<string, string>): ChildHosts =>
    new ChildHosts({
      main: '/nowhere/main.js',
      log,
      memoryMb: 64,
      env,
      firstVersion: '1.0.0',
      ending: new AbortController().signal,
    });
  afterEach(() => {
    process.execPath = node;
    faults.length = 0;
  });

  it('a failed start is reported, and sending to the host does no harm', async () => {
    process.execPath = '/nowhere/node';
    const children = hostsWith({});
    await children.start();
    children.sendOrder({ databaseUrl: 'postgres://nowhere' }, () => {});
    const ends: string[] = [];
    const onEnd = (how: string): void => void ends.push(how);
    expect(children.spawn('2.0.0', onEnd)).toBeUndefined();
    detachedHosts({ main: '/nowhere/main.js', log, memoryMb: 64, env: {} }, () => {}).spawn('1.0.0', onEnd);
    // an error without a listener is thrown outside of the test, and fails it
    await pause(200);
    expect(faults.length).toBeGreaterThanOrEqual(3);
    expect(ends).toEqual(['spawn /nowhere/node ENOENT', 'spawn /nowhere/node ENOENT']);
    await children.stop();
  });

  it('a start that the system rejects at once is reported', async () => {
    const children = hostsWith({ TOO_LONG: 'x'.repeat(3_000_000) });
    await children.start();
    const ends: string[] = [];
    expect(children.spawn('1.0.0', (how) => ends.push(how))).toBeUndefined();
    expect(ends).toEqual(['spawn E2BIG']);
    expect(faults).toEqual([expect.objectContaining({ code: 'E2BIG' }), expect.objectContaining({ code: 'E2BIG' })]);
    await children.stop();
  });
});

it('the host that was started early is used for its own version only', async () => {
  const started: string[] = [];
  const log = { ...silent, error: (fields: { engine?: string }) => void started.push(fields.engine ?? '') };
  const children = new ChildHosts({
    main: '/nowhere/main.js',
    log,
    memoryMb: 64,
    env: {},
    firstVersion: '1.0.0',
    ending: new AbortController().signal,
  });
  await children.start();
  const ends: string[] = [];
  children.spawn('2.0.0', (how) => ends.push(how));
  expect(
    children.spawn('1.0.0', (how) => ends.push(how)),
    'its process',
  ).toBeGreaterThan(0);
  // each ends at once, because the file does not exist
  await until('both have ended', () => started.length >= 2 || undefined);
  await pause(200);
  expect(started.toSorted()).toEqual(['1.0.0', '2.0.0']);
  expect(ends).toEqual(['exit 1', 'exit 1']);
  await children.stop();
});
