import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { MillraceError } from '../errors.ts';
import { shell } from '../../test/harness/cli/shell.ts';
import { makeProgram } from './program.ts';
import type { RoleCommands, UpOptions, WorkerOptions } from './commands/server/role-commands.ts';
import { readParam } from './commands/runs/run-job.ts';

const idle = async (): Promise<void> => {};
const roles: RoleCommands = {
  up: idle,
  down: idle,
  api: idle,
  launcher: idle,
  host: idle,
  courier: idle,
  conductor: idle,
  worker: idle,
};

function leaves(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
}

describe('help', () => {
  const program = makeProgram(roles, {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: {},
    cwd: '/',
  });

  it.each(leaves(program).map((command) => [`${command.parent?.name()} ${command.name()}`, command] as const))(
    'the help of %s has a description and an example',
    async (_, command) => {
      expect(command.description()).toMatch(/[.!]$/);
      const path = [];
      for (let at: Command | null = command; at?.parent; at = at.parent) path.unshift(at.name());
      const { code, stdout } = await shell([...path, '--help']);
      expect(code).toBe(0);
      expect(stdout).toContain('Examples:\n  ');
      expect(stdout).toContain('--json');
    },
  );

  it('the help lists every command and the exit codes', async () => {
    const { code, stdout } = await shell(['--help']);
    expect(code).toBe(0);
    for (const name of ['up', 'apply', 'validate', 'run', 'runs', 'logs', 'key', 'stash', 'events', 'schema']) {
      expect(stdout).toMatch(new RegExp(`^  ${name}\\b`, 'm'));
    }
    expect(stdout).toContain('3    the server cannot be reached');
  });

  it('--version prints the version', async () =>
    expect((await shell(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/));
});

describe('invalid command lines', () => {
  it.each([
    [['frobnicate']],
    [['aply', '-f', 'x']],
    [['jobs', '--nope']],
    [['job']],
    [['job', 'a/b', 'c']],
    [['up', '--port', 'http']],
    [['up', '--port', '65536']],
    [['runs', '--state', 'sleeping']],
    [['run', 'a/b', '--priority', 'urgent']],
    [['run', 'a/b', '--param', 'novalue']],
    [['run', 'a/b', '--instant', 'tomorrow']],
    [['apply']],
    [['apply', '-f', '-', '-f', '-']],
    [['cancel', 'not-a-uuid']],
    [['key', 'create', '--name', 'x', '--role', 'king']],
    [['jobs', '--url', 'ftp://x']],
    [[]],
  ])('the command line %j ends with 2', async (argv) => {
    const { code, stdout, stderr } = await shell(argv, { env: { MILLRACE_URL: 'http://127.0.0.1:1' } });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).not.toBe('');
    expect(stderr).not.toContain('    at ');
  });

  it('an unknown command gets a suggestion', async () => {
    expect((await shell(['aply'])).stderr).toContain('Did you mean apply?');
  });
});

describe('roles', () => {
  it('roles receive only the flags that were given', async () => {
    const given: UpOptions[] = [];
    const up = async (options: UpOptions): Promise<void> => void given.push(options);
    await shell(['up'], { roles: { up }, cwd: '/w' });
    await shell(['up', '--port', '0', '--host', '::1', '--home', 'h', '--max-tasks', '3', '--no-worker'], {
      roles: { up },
      cwd: '/w',
    });
    expect(given).toEqual([{ worker: true }, { port: 0, host: '::1', home: '/w/h', maxTasks: 3, worker: false }]);
  });

  it('down receives the home to stop', async () => {
    const homes: string[] = [];
    await shell(['down'], {
      roles: { down: async ({ home }) => void homes.push(home) },
      cwd: '/w',
      env: { MILLRACE_HOME: 'x' },
    });
    expect(homes).toEqual(['/w/x']);
  });

  it('a worker receives server and key, lists and absolute paths', async () => {
    const given: WorkerOptions[] = [];
    const argv = [
      'worker',
      '--queue',
      'a',
      '--queue',
      'b',
      '--runtime',
      'process,none',
      '--runtime',
      'function',
      '--functions',
      'f.js',
      '--name',
      'n',
    ];
    const env = { MILLRACE_URL: 'http://h:1', MILLRACE_KEY: 'k' };
    const worker = async (options: WorkerOptions): Promise<void> => void given.push(options);
    expect((await shell(argv, { roles: { worker }, cwd: '/w', env })).code).toBe(0);
    expect(given).toEqual([
      {
        url: 'http://h:1',
        key: 'k',
        queues: ['a', 'b'],
        runtimes: ['process', 'none', 'function'],
        functions: '/w/f.js',
        name: 'n',
      },
    ]);
    expect((await shell(['worker', '--runtime', 'magic'], { roles: { worker }, env })).code).toBe(2);
    for (const queue of ['', 'a b', '-x'])
      expect((await shell(['worker', `--queue=${queue}`], { roles: { worker }, env })).code).toBe(2);
  });

  it("a worker's key may come from a file", async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-cli-'));
    await writeFile(join(folder, 'key'), 'mrk_key-from-a-file\n', { mode: 0o600 });
    const keys: (string | undefined)[] = [];
    const options = {
      cwd: folder,
      env: { MILLRACE_URL: 'http://h:1' },
      roles: { worker: async ({ key }: WorkerOptions) => void keys.push(key) },
    };
    await shell(['worker', '--key-file', 'key'], options);
    await writeFile(join(folder, 'empty'), '\n', { mode: 0o600 });
    await writeFile(join(folder, 'short'), 'mrk_\n', { mode: 0o600 });
    await writeFile(join(folder, 'open'), 'mrk_key-from-a-file\n');
    await chmod(join(folder, 'open'), 0o666);
    const faulty: [string, string][] = [
      ['empty', '/empty is empty'],
      ['short', '/short is too short'],
      ['open', '/open is open to other users (mode 666). Remedy: chmod 600'],
      ['missing', '/missing does not exist'],
    ];
    if (process.getuid?.() === 0) {
      await writeFile(join(folder, 'theirs'), 'mrk_key-from-a-file\n', { mode: 0o600 });
      await chown(join(folder, 'theirs'), 12_345, 12_345);
      faulty.push(['theirs', '/theirs belongs to user 12345']);
    }
    for (const [file, message] of faulty) {
      const { code, stderr } = await shell(['worker', '--key-file', file], options);
      expect([code, stderr]).toEqual([1, expect.stringContaining(message) as unknown]);
    }
    await rm(folder, { recursive: true });
    expect(keys).toEqual(['mrk_key-from-a-file']);
  });

  it('an error of a role is printed in one line, or as a problem', async () => {
    const up = async (): Promise<void> => {
      throw new MillraceError('already_running', 'millrace already runs on /x, as process 7');
    };
    expect(await shell(['up'], { roles: { up } })).toEqual({
      code: 1,
      stdout: '',
      stderr: 'error: millrace already runs on /x, as process 7\n',
    });
    const { stderr } = await shell(['up', '--json'], { roles: { up } });
    expect(JSON.parse(stderr)).toMatchObject({ code: 'already_running' });
  });
});

describe('parameters', () => {
  it.each([
    ['a=1', 'a', 1],
    ['a="1"', 'a', '1'],
    ['a=hello world', 'a', 'hello world'],
    ['a={"b":[true]}', 'a', { b: [true] }],
    ['a=', 'a', ''],
    ['a=b=c', 'a', 'b=c'],
  ])('the parameter %s is parsed', (text, name, value) => expect(readParam(text)).toEqual([name, value]));
});
