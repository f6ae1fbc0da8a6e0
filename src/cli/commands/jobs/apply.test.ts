import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Ran, shell, type ShellOptions } from '../../../../test/harness/cli/shell.ts';
import { startTenantServer, type TenantServer } from '../../../../test/harness/cli/tenant-server.ts';

let cwd = '';
let server: TenantServer;
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'millrace-cli-'));
  server = await startTenantServer(['p', 'q']);
});
afterEach(async () => {
  await server.stop();
  await rm(cwd, { recursive: true, force: true });
});

async function file(name: string, text: string): Promise<void> {
  await mkdir(dirname(join(cwd, name)), { recursive: true });
  await writeFile(join(cwd, name), text);
}
const job = (name: string, more = 'tasks: [{name: t}]', project = 'p'): string =>
  `project: ${project}\nname: ${name}\ndescription: ''\ntriggers: []\n${more}\n`;
const after = (...parents: string[]): string =>
  `tasks: [{name: t, depends: [${parents.map((p) => `${p}/task/t`).join(', ')}]}]`;
const apply = (argv: string[], options: ShellOptions = {}): Promise<Ran> =>
  shell(['apply', ...argv], { cwd, env: server.env, ...options });
const writes = (): string[] => server.calls.filter((call) => !call.startsWith('GET') && !call.includes('dry_run=true'));

describe('apply', () => {
  it('apply creates a job, and reports its changes or that it is unchanged', async () => {
    await file('a.yaml', job('a'));
    expect((await apply(['-f', 'a.yaml'])).stdout).toBe('+ p/a created (version 1)\n');
    expect((await apply(['-f', 'a.yaml'])).stdout).toBe('= p/a unchanged (version 1)\n');
    await file('a.yaml', job('a').replace("''", 'new') + 'paused: true\n');
    const { code, stdout, stderr } = await apply(['-f', 'a.yaml']);
    expect(code).toBe(0);
    expect(stdout).toBe('~ p/a changed (version 2)\n    ~ description: "" → "new"\n    + paused: true\n');
    expect(stderr).toBe('1 job: 1 changed\n');
  });

  it('apply applies a folder of jobs that refer to each other at once', async () => {
    await file('jobs/1.yaml', job('first', after('second', 'third')));
    await file('jobs/2.yaml', `${job('second', after('third'))}---\n${job('other')}`);
    await file('jobs/3.yaml', job('third'));
    const { code } = await apply(['-f', 'jobs']);
    expect(code).toBe(0);
    expect(await server.jobNames()).toEqual(['p/first', 'p/other', 'p/second', 'p/third']);
    expect(writes()).toHaveLength(4);
  });

  it('apply writes nothing if one file has a fault', async () => {
    await file('good.yaml', job('good'));
    await file('bad.yaml', job('bad', 'tasks: [{name: t, threshold: 0}]'));
    const { code, stdout, stderr } = await apply(['-f', 'good.yaml', '-f', 'bad.yaml']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^error: 1 fault; nothing was applied\n {2}bad\.yaml:tasks\[0\]\.threshold: /);
    expect(server.calls).toEqual([]);
  });

  it('apply creates a project only with --create-project', async () => {
    await file('a.yaml', job('a', undefined, 'new'));
    const refused = await apply(['-f', 'a.yaml']);
    expect(refused.code).toBe(5);
    expect(refused.stderr).toContain('--create-project');
    expect(writes()).toEqual([]);
    const made = await apply(['-f', 'a.yaml', '--create-project']);
    expect(made.stdout).toBe('+ project new created\n+ new/a created (version 1)\n');
  });

  it('apply reads stdin, and prints JSON', async () => {
    const { stdout } = await apply(['-f', '-', '--json'], { stdin: job('a') });
    expect(JSON.parse(stdout)).toMatchObject({
      dry_run: false,
      projects_created: [],
      jobs: [
        {
          file: 'stdin',
          project: 'p',
          name: 'a',
          outcome: 'created',
          version: 1,
          warnings: [],
          changes: [{ path: '' }],
        },
      ],
      pruned: [],
    });
  });

  it('apply reports a reference that leads nowhere, applies the other jobs, and ends with 1', async () => {
    await file('a.yaml', job('a', after('nowhere')));
    await file('b.yaml', job('b'));
    const { code, stdout } = await apply(['-f', '.']);
    expect(code).toBe(1);
    expect(stdout).toContain('✗ p/a failed (a.yaml)\n    tasks[0].depends[0]: task not found: p/nowhere/task/t\n');
    expect(await server.jobNames()).toEqual(['p/b']);
  });

  it('apply ends with 4 if the key is not allowed to apply', async () => {
    await file('a.yaml', job('a'));
    const { code, stderr } = await apply(['-f', '.'], { env: { ...server.env, MILLRACE_KEY: 'viewer-key' } });
    expect(code).toBe(4);
    expect(stderr).toContain('the role viewer may not do this');
  });

  it('apply prints warnings', async () => {
    await file('a.yaml', job('a', 'tasks: [{name: s}, {name: t, depends: [task/s], threshold: 5}]'));
    expect((await apply(['-f', '.'])).stdout).toContain('    ! warning: tasks[1].threshold: ');
  });
});

describe('apply --dry-run', () => {
  it('a dry run writes nothing, and accepts references to jobs that would be created', async () => {
    await file('a.yaml', job('a', after('b')));
    await file('b.yaml', job('b'));
    await file('c.yaml', job('c', after('nowhere')));
    await file('d.yaml', job('d', undefined, 'new'));
    const { code, stdout } = await apply(['-f', '.', '--dry-run', '--create-project']);
    expect(code).toBe(1);
    expect(stdout).toContain('+ project new would be created\n');
    expect(stdout).toContain('+ p/a would follow: it refers to jobs that this apply would create\n');
    expect(stdout).toContain('+ p/b would be created (version 1)\n');
    expect(stdout).toContain('✗ p/c failed');
    expect(stdout).toContain('+ new/d would be created (version 1)\n');
    expect(writes()).toEqual([]);
  });
});

describe('apply --prune', () => {
  beforeEach(async () => {
    await apply(['-f', '-'], { stdin: [job('a'), job('old'), job('x', undefined, 'q')].join('---\n') });
    await file('jobs/a.yaml', job('a'));
    server.calls.length = 0;
  });

  it('--prune deletes jobs that no file names, only in the projects of the files', async () => {
    const { code, stdout } = await apply(['-f', 'jobs', '--prune', '--yes']);
    expect(code).toBe(0);
    expect(stdout).toBe('= p/a unchanged (version 1)\n- p/old deleted\n');
    expect(await server.jobNames()).toEqual(['p/a', 'q/x']);
  });

  it('--prune needs --yes without a terminal, before anything is written', async () => {
    const { code, stderr } = await apply(['-f', 'jobs', '--prune']);
    expect(code).toBe(2);
    expect(stderr).toContain('--yes');
    expect(server.calls).toEqual([]);
  });

  it('--prune asks on a terminal, and deletes nothing after "no"', async () => {
    const refused = await apply(['-f', 'jobs', '--prune'], { tty: true, stdin: 'n\n' });
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('  p/old\nDelete 1 job that no file names? [y/N] ');
    expect(await server.jobNames()).toContain('p/old');
    const agreed = await apply(['-f', 'jobs', '--prune'], { tty: true, stdin: 'y\n' });
    expect(agreed.code).toBe(0);
    expect(await server.jobNames()).not.toContain('p/old');
  });

  it('--prune only lists jobs with --dry-run', async () => {
    const { stdout } = await apply(['-f', 'jobs', '--prune', '--dry-run']);
    expect(stdout).toContain('- p/old would be deleted\n');
    expect(writes()).toEqual([]);
  });

  it('--prune deletes nothing if a job failed', async () => {
    await file('jobs/b.yaml', job('b', after('nowhere')));
    expect((await apply(['-f', 'jobs', '--prune', '--yes'])).code).toBe(1);
    expect(await server.jobNames()).toContain('p/old');
  });
});
