import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { engineBuild, removeEngineBuilds } from '../../../../test/harness/engine-builds.ts';
import { contractNumber } from '../../../contract/engine.ts';
import { MillraceError } from '../../../errors.ts';
import { packageVersion } from '../../../kernel/process/package-files.ts';
import { type LocalServer, type Ran, shell, startLocalServer } from '../../../../test/harness/cli/shell.ts';

const version = '0.2.1-test.1';
let home: string;
let server: LocalServer;
let tenants: { name: string; version: string | null }[] = [];
let unknown: string[] = [];
/** The server has another home, without the engines of this one. */
let isElsewhere = false;
beforeAll(async () => {
  server = await startLocalServer({
    'GET /api/tenants': async () => ({ items: tenants as never, next: null }),
    'GET /api/engines/{version}/users': async ({ params }) => {
      if (isElsewhere) throw new MillraceError('not_found', `there is no engine ${params.version}`);
      const users = tenants.filter((each) => each.version === params.version);
      return { tenants: users.map(({ name }) => name), unknown, next: null };
    },
  });
});
afterAll(async () => {
  await server.stop();
  await removeEngineBuilds();
});
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'millrace-engine-cli-'));
  tenants = [];
  unknown = [];
  isElsewhere = false;
});
afterEach(() => rm(home, { recursive: true }));

const alone = (...argv: string[]): Promise<Ran> => shell(['engine', ...argv], { env: { MILLRACE_HOME: home } });
const served = (...argv: string[]): Promise<Ran> =>
  shell(['engine', ...argv], { env: { ...server.env, MILLRACE_HOME: home } });
const inside = (): Promise<string[]> => readdir(join(home, 'engines')).catch(() => []);

describe('engine commands', () => {
  it('engine add works without a server, and prints what it added', async () => {
    const build = await engineBuild({ version });
    const files = await readdir(join(build, 'migrations', 'tenant'));
    const migrations = files.filter((name) => name.endsWith('.sql')).length;
    expect(await alone('add', build)).toEqual({
      code: 0,
      stdout: `engine ${version} is added: contract ${contractNumber}, ${migrations} migrations\n`,
      stderr: '',
    });
    const again = await alone('add', build, '--json');
    expect(again).toMatchObject({ code: 1, stdout: '' });
    expect(JSON.parse(again.stderr)).toMatchObject({ code: 'conflict' });
    expect(await alone('add', 'nowhere')).toMatchObject({ code: 5, stderr: 'error: there is no /nowhere\n' });
  });

  it('engine list prints the installed versions, with their tenants if a server answers', async () => {
    await alone('add', await engineBuild({ version }));
    const lonely = await alone('list');
    expect(lonely.code).toBe(0);
    expect(lonely.stdout.split('\n').slice(0, 3)).toEqual([
      'VERSION       CONTRACT  STATE                 TENANTS',
      `${version}         ${contractNumber}  usable                ?`,
      `${packageVersion}                ${contractNumber}  usable; this release  ?`,
    ]);
    expect(lonely.stderr).toContain('the tenants of each version are not known: no server is known');
    tenants = [
      { name: 'one', version },
      { name: 'two', version },
      { name: 'bare', version: null },
      { name: 'lost', version: '0.0.9' },
    ];
    const known = await served('list', '--json');
    expect(known.stderr).toBe('');
    expect(JSON.parse(known.stdout)).toEqual([
      { version, contract: contractNumber, fault: null, loads: true, running: false, tenants: ['one', 'two'] },
      { version: packageVersion, contract: contractNumber, fault: null, loads: true, running: true, tenants: [] },
      { version: '0.0.9', contract: null, fault: 'not installed here', loads: null, running: false, tenants: ['lost'] },
    ]);
    const [, , own, lost] = (await served('list')).stdout.split('\n');
    expect(own).toMatch(/ -$/);
    expect(lost).toMatch(/^0\.0\.9 +- +not installed here +lost$/);
  });

  it('engine list says why the code of an engine cannot be loaded', async () => {
    await alone('add', await engineBuild({ version }));
    await writeFile(join(home, 'engines', version, 'dist', 'engine.js'), 'throw new Error("not today")');
    const { stdout } = await alone('list', '--json');
    expect(JSON.parse(stdout)).toContainEqual(
      expect.objectContaining({
        version,
        loads: false,
        fault: `engine ${version} cannot be used: its code cannot be loaded: not today`,
      }),
    );
    expect((await alone('list')).stdout).toContain('its code cannot be loaded: not today');
  });

  it('engine remove removes only a version that no tenant uses', async () => {
    await alone('add', await engineBuild({ version }));
    tenants = [{ name: 'one', version }];
    for (const flags of [[], ['--force']]) {
      const refused = await served('remove', version, ...flags);
      expect(refused).toMatchObject({ code: 1 });
      expect(refused.stderr).toContain(`engine ${version} is used by 1 tenant (one) and is not removed`);
    }
    expect(await inside()).toEqual([version]);
    tenants = [{ name: 'one', version: packageVersion }];
    expect(await served('remove', version)).toMatchObject({ code: 0, stdout: `engine ${version} is removed\n` });
    expect(await inside()).toEqual([]);
    expect(await served('remove', version)).toMatchObject({ code: 5 });
  });

  it('engine remove removes a version that the server does not know', async () => {
    await alone('add', await engineBuild({ version }));
    isElsewhere = true;
    expect(await served('remove', version)).toMatchObject({ code: 0 });
    expect(await inside()).toEqual([]);
  });

  it('engine remove needs --force if no server answers', async () => {
    await alone('add', await engineBuild({ version }));
    const refused = await alone('remove', version);
    expect(refused).toMatchObject({ code: 3 });
    expect(refused.stderr).toContain(`it is not known whether a tenant uses engine ${version}`);
    expect(await inside()).toEqual([version]);
    expect(await alone('remove', version, '--force')).toMatchObject({ code: 0 });
    expect(await inside()).toEqual([]);
  });

  it('engine remove needs --force if the version of a tenant cannot be read', async () => {
    await alone('add', await engineBuild({ version }));
    unknown = ['far'];
    for (const command of [
      ['remove', version],
      ['add', await engineBuild({ version }), '--replace'],
    ]) {
      const refused = await served(...command);
      expect(refused).toMatchObject({ code: 3 });
      expect(refused.stderr).toContain(
        `it is not known whether a tenant uses engine ${version}: the version of 1 tenant (far) is not known. With`,
      );
    }
    expect(await inside()).toEqual([version]);
    expect(await served('remove', version, '--force')).toMatchObject({ code: 0 });
    expect(await inside()).toEqual([]);
  });

  it('engine add --replace replaces a version that no tenant uses, or by --force one that is used', async () => {
    const build = await engineBuild({ version });
    await alone('add', build);
    tenants = [{ name: 'one', version }];
    const refused = await served('add', build, '--replace');
    expect(refused.stderr).toContain(`engine ${version} is used by 1 tenant (one) and is not replaced`);
    expect(refused.stderr).toContain('or replace it with --force if it is broken');
    expect(await served('add', build, '--replace', '--force')).toMatchObject({ code: 0 });
    expect(await served('remove', version, '--force')).toMatchObject({ code: 1 });
    tenants = [];
    expect(await served('add', build, '--replace')).toMatchObject({ code: 0 });
    expect(await alone('add', build, '--replace')).toMatchObject({ code: 3 });
    expect(await alone('add', build, '--replace', '--force')).toMatchObject({ code: 0 });
    expect(await inside()).toEqual([version]);
  });
});
