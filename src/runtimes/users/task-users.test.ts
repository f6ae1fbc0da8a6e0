/** Tasks under root: what one task can see of Millrace and of other tasks, and what it leaves behind. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { until } from '../../../test/harness/until.ts';
import { silent } from '../../kernel/log.ts';
import type { Outcome, Task } from '../contract.ts';
import { processRuntime } from '../process/process.ts';
import { findSeparation } from './task-separation.ts';
import { TaskUsers } from './task-users.ts';

const folder = mkdtempSync('/tmp/task-users-test-');
chmodSync(folder, 0o755);
const open: { stop(): Promise<unknown> }[] = [];

afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.stop();
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A skip is printed, and with CI=true it is a failure. */
function needsRoot(): boolean {
  if (process.getuid?.() === 0) return true;
  const sentence = 'these tests need root, and are skipped: how root gives each task a user of its own';
  if (process.env['CI'] === 'true') throw new Error(sentence);
  console.warn(`\nSKIPPED: ${sentence}\n`);
  return false;
}

function taskOf(script: string): Task {
  const named = { id: '', name: 'x' };
  const facts = {
    tenant: 'default',
    run: Math.random().toString(36),
    lease: 1,
    instant: '2026-01-01T00:00:00.000Z',
    attempt: 1,
    priority: 'normal',
    params: {},
    task: named,
    job: named,
    project: named,
    node: null,
    url: '',
    credential: '',
    idempotencyKey: '',
  };
  return {
    work: { kind: 'process', command: ['/bin/sh', '-c', script], cwd: null },
    env: { MINE: 'secret' },
    secrets: new Set(),
    facts,
  };
}

interface Ran {
  readonly outcome: Outcome;
  readonly printed: string;
}

interface TaskChange {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

interface TestRuntime {
  readonly users: TaskUsers;
  readonly run: (script: string, change?: TaskChange) => Promise<Ran>;
}

function makeRuntime(wish?: string): TestRuntime {
  const users = new TaskUsers({ wish, log: silent });
  const runtime = processRuntime({ environment: process.env, users });
  open.push(users, runtime.service);
  return {
    users,
    async run(script, { env, cwd = null } = {}) {
      const chunks: Buffer[] = [];
      const output = { write: (_: unknown, data: Buffer) => void chunks.push(data) };
      const task = taskOf(script);
      const work = { kind: 'process', command: ['/bin/sh', '-c', script], cwd } as const;
      const changed = { ...task, work, env: { ...task.env, ...env } };
      const outcome = await runtime.run(changed, output, new AbortController().signal);
      return { outcome, printed: Buffer.concat(chunks).toString().trim() };
    },
  };
}

const uidOf = (pid: number): number =>
  Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? -1);

describe.skipIf(!needsRoot())('tasks of a worker that root started', () => {
  it('a task runs as a user without groups and privileges, with a folder of its own', async () => {
    const { run } = makeRuntime();
    const { printed } = await run(
      'id -u; id -G; grep CapEff /proc/self/status; echo "$HOME"; stat -c "%u %a" "$HOME"; echo $TMPDIR',
    );
    const [uid = '', groups, rights, home = '', owner, temporary] = printed.split('\n');
    expect(Number(uid)).toBeGreaterThanOrEqual(60_578);
    expect(groups).toBe(uid);
    expect(rights).toMatch(/CapEff:\s+0+$/);
    expect(home.endsWith(`/${uid}`)).toBe(true);
    expect(owner).toBe(`${uid} 700`);
    expect(temporary).toBe(home);
  });

  it('a task cannot read a file of root, nor the environment and memory of its worker', async () => {
    const secret = join(folder, 'secret');
    writeFileSync(secret, 'x', { mode: 0o600 });
    const { run } = makeRuntime();
    for (const path of [secret, `/proc/${process.pid}/environ`, `/proc/${process.pid}/mem`]) {
      expect((await run(`head -c 1 ${path}`)).outcome.state).toBe('failure');
    }
  });

  it('a task cannot read the environment of another task, nor kill it', async () => {
    const { run } = makeRuntime();
    const ready = join(folder, 'ready');
    const other = run(`echo $$; while [ ! -e ${ready} ]; do sleep 0.05; done`);
    const pid = await until('the other task runs', () => otherTask());
    const tried = await run(`cat /proc/${pid}/environ || kill -9 ${pid} || exit 3`);
    expect(tried.outcome).toMatchObject({ state: 'failure', exitCode: 3 });
    writeFileSync(ready, '');
    expect((await other).outcome.state).toBe('success');
  });

  it('a command that is not in PATH is reported as such, even if PATH has a folder of root', async () => {
    const users = new TaskUsers({ wish: undefined, log: silent });
    const PATH = `/usr/bin:${mkdtempSync(join(folder, 'closed-'))}`;
    const runtime = processRuntime({ environment: { PATH }, users });
    open.push(users, runtime.service);
    const task = { ...taskOf(''), work: { kind: 'process', command: ['no-such-command'], cwd: null } } as const;
    const outcome = await runtime.run(task, { write: () => undefined }, new AbortController().signal);
    expect(outcome.reason).toMatch(/^the command "no-such-command" was not found/);
  });

  it('a task can open its standard error by name', async () => {
    const { run } = makeRuntime();
    expect(await run('echo oops > /dev/stderr')).toMatchObject({ outcome: { state: 'success' }, printed: 'oops' });
  });

  it('a task leaves no process behind, whatever it did to hide one', async () => {
    const { run, users } = makeRuntime();
    const left = join(folder, 'left');
    writeFileSync(left, '');
    chmodSync(left, 0o666);
    const hide = `env -i setsid /bin/sh -c 'echo $$ > ${left}; while :; do (sleep 0.01 &); sleep 0.01; done' &`;
    const { printed } = await run(`id -u; ${hide} while [ ! -s ${left} ]; do sleep 0.01; done`);
    await users.stop();
    const living = execFileSync('ps', ['-eo', 'uid=,stat=']).toString().split('\n');
    expect(living.filter((line) => line.trim().startsWith(`${printed} `) && !line.includes('Z'))).toEqual([]);
  });

  it('a task leaves no process behind, even one that kills the cleaning shell', async () => {
    const { run, users } = makeRuntime();
    const daemon = `perl -MPOSIX -e 'fork and exit; POSIX::setsid(); $end = time + 3; kill 9, -1 while time < $end; sleep 600'`;
    const { printed } = await run(`id -u; ${daemon}`);
    await users.stop();
    const living = execFileSync('ps', ['-eo', 'uid=,stat=']).toString().split('\n');
    expect(living.filter((line) => line.trim().startsWith(`${printed} `) && !line.includes('Z'))).toEqual([]);
  });

  it('a task does not get the user of another task by a setuid program', async () => {
    const { run } = makeRuntime();
    const shared = mkdtempSync(join(folder, 'shared-'));
    chmodSync(shared, 0o777);
    const until = (file: string): string => `while [ ! -e ${shared}/${file} ]; do sleep 0.02; done`;
    const left = run(`cp /usr/bin/id ${shared}/id; chmod 6755 ${shared}/id; touch ${shared}/made; ${until('done')}`);
    const tried = await run(`${until('made')}; id -u; ${shared}/id -u; touch ${shared}/done`);
    const [own, gained] = tried.printed.split('\n');
    expect(gained).toBe(own);
    expect((await left).outcome.state).toBe('success');
  });

  it('a task cannot make the programs that confine it load its code', async () => {
    const { run } = makeRuntime();
    // with this variable the loader names every program that it loads libraries for
    const { printed } = await run('grep NoNewPrivs /proc/self/status', { env: { LD_DEBUG: 'files' } });
    expect(printed).toMatch(/NoNewPrivs:\s+1/);
    expect(printed).toContain('needed by');
    expect(printed).not.toMatch(/setpriv|prlimit/);
  });

  it('a task does not begin below a folder that is closed to it, and learns nothing about it', async () => {
    const { run } = makeRuntime();
    const closed = mkdtempSync(join(folder, 'behind-'));
    chmodSync(closed, 0o700);
    const inner = join(closed, 'inner');
    mkdirSync(inner, { mode: 0o755 });
    for (const cwd of [inner, join(closed, 'missing')]) {
      expect((await run('ls', { cwd })).outcome.reason).toMatch(/^the folder ".*" \(cwd\) is closed to tasks/);
    }
    chmodSync(closed, 0o755);
    expect((await run('pwd', { cwd: inner })).printed).toBe(inner);
    expect((await run('pwd', { cwd: join(closed, 'missing') })).outcome.reason).toMatch(/does not exist/);
  });

  it('the folder of a task is emptied, even after the task made it unreadable', async () => {
    const { run, users } = makeRuntime();
    const { printed } = await run(
      'mkdir "$HOME/a"; touch "$HOME/a/b" "$HOME/.c"; chmod 0 "$HOME/a"; chmod 777 "$HOME"; echo "$HOME"',
    );
    await users.stop();
    expect(execFileSync('ls', ['-A', printed]).toString()).toBe('');
    expect(statSync(printed).mode & 0o777).toBe(0o700);
  });

  it('a task leaves no shared memory behind', async () => {
    const { run, users } = makeRuntime();
    const { printed } = await run(
      'ipcmk -M 4096 -S 1 -Q > /dev/null; mkdir -p /dev/shm/left-$$/a; chmod 0 /dev/shm/left-$$; id -u; echo left-$$',
    );
    const [uid = '', name = ''] = printed.split('\n');
    await users.stop();
    const tables = ['shm', 'sem', 'msg'].map((kind) => readFileSync(`/proc/sysvipc/${kind}`, 'latin1'));
    expect(tables.filter((table) => new RegExp(`\\s${uid}\\s`).test(table))).toEqual([]);
    expect(existsSync(join('/dev/shm', name))).toBe(false);
  });

  it('a task has a limit of processes', async () => {
    const { run } = makeRuntime();
    expect((await run('grep "^Max processes" /proc/self/limits')).printed).toMatch(/4096\s+4096/);
  });

  it('the kernel prefers a task to Millrace if memory runs out', async () => {
    const { run } = makeRuntime();
    const score = 'cat /proc/self/oom_score_adj';
    const { outcome } = await run(`until [ "$(${score})" = 500 ]; do sleep 0.01; done`);
    expect(outcome.state).toBe('success');
  });

  it('tasks of two workers on the same machine have different users', async () => {
    const [one, two] = [makeRuntime(), makeRuntime()];
    const [a, b] = await Promise.all([one.run('id -u; sleep 0.2'), two.run('id -u; sleep 0.2')]);
    expect(a.printed).not.toBe(b.printed);
  });

  it('a task of a dead worker is ended by the next worker with its users', async () => {
    const range = { first: 69_000, last: 69_010 };
    const orphan = spawn('/bin/sleep', ['600'], { uid: range.last, gid: range.last, detached: true, stdio: 'ignore' });
    const exit = once(orphan, 'exit');
    await once(orphan, 'spawn');
    expect(uidOf(orphan.pid ?? 0)).toBe(range.last);
    await makeRuntime(`${range.first}-${range.last}`).run('true');
    expect(await exit).toEqual([null, 'SIGKILL']);
  });

  it('all tasks may run as one account', async () => {
    const { run, users } = makeRuntime('nobody');
    expect((await run('id -un')).printed).toBe('nobody');
    expect((await users.separation()).about).toMatch(/^Tasks run as nobody, all of them/);
  });

  it('tasks run as root if configured, and the start says so', async () => {
    const { run, users } = makeRuntime('root');
    expect((await run('id -u')).printed).toBe('0');
    expect(await users.separation()).toMatchObject({ kind: 'same' });
  });

  it.each([
    ['no-such-account', /there is no such account/],
    ['0-10', /must lie between 1 and/],
    ['70010-70000', /the smaller number first/],
    ['1-100', /the account \w+ is in this range/],
  ])('the wish to run tasks as %s is rejected', async (wish, message) => {
    await expect(findSeparation(wish)).rejects.toThrow(message);
  });
});

/** The main process of the task that waits for a file. */
function otherTask(): number | undefined {
  const listed = execFileSync('ps', ['-eo', 'pid=,uid=,args=']).toString().split('\n');
  const line = listed.find((each) => / \/bin\/sh -c echo \$\$; while \[ ! -e /.test(each));
  return line === undefined ? undefined : Number(line.trim().split(/\s+/)[0]);
}
