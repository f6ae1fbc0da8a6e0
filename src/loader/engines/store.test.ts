import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { engineBuild, removeEngineBuilds } from '../../../test/harness/engine-builds.ts';
import { textWith } from '../../../test/harness/expected.ts';
import { contractNumber } from '../../contract/engine.ts';
import { engine } from '../../engine/engine.ts';
import { readMigrations } from '../../postgres/migrate.ts';
import { addEngine, removeEngine } from './store.ts';
import { Engines } from './engines.ts';

const run = promisify(execFile);
const version = '0.2.1-test.1';
let place: string;
let home: string;
beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'millrace-store-'));
  home = join(place, 'home');
});
afterEach(() => rm(place, { recursive: true }));
afterAll(removeEngineBuilds);

const inside = (): Promise<string[]> => readdir(join(home, 'engines')).catch(() => []);
const found = () => new Engines(engine, join(home, 'engines')).find(version);
const migrationCount = async (build: string): Promise<number> =>
  (await readMigrations(join(build, 'migrations', 'tenant'))).length;

/** A copy of the build that `spoil` has changed. */
async function spoilt(spoil: (at: string) => Promise<unknown>): Promise<string> {
  const at = join(place, 'spoilt');
  await cp(await engineBuild({ version }), at, { recursive: true });
  await spoil(at);
  return at;
}

describe('add engine', () => {
  it('adding copies only the parts of an engine from a folder, and the engine is found', async () => {
    const source = await spoilt(async (at) => {
      await mkdir(join(at, 'node_modules'));
      await writeFile(join(at, 'secret'), 'x');
    });
    const migrations = await migrationCount(source);
    expect(await addEngine(home, source)).toEqual({ version, contract: contractNumber, migrations });
    expect(await inside()).toEqual([version]);
    expect((await readdir(join(home, 'engines', version))).toSorted()).toEqual(['dist', 'migrations', 'package.json']);
    for (const folder of [home, join(home, 'engines')]) expect((await stat(folder)).mode & 0o777).toBe(0o700);
    expect(await found()).toMatchObject({ ok: true, engine: { version } });
  });

  it('adding accepts a tarball of `npm pack`', async () => {
    const build = await engineBuild({ version });
    await run('npm', ['pack', '--pack-destination', place], { cwd: build });
    const migrations = await migrationCount(build);
    const added = await addEngine(home, join(place, `millrace-${version}.tgz`));
    expect(added).toEqual({ version, contract: contractNumber, migrations });
    expect(await found()).toMatchObject({ ok: true, engine: { version } });
  });

  it('adding copies the targets of symbolic links', async () => {
    const source = await spoilt(async (at) => {
      await cp(join(at, 'dist'), join(place, 'elsewhere'), { recursive: true });
      await rm(join(at, 'dist'), { recursive: true });
      await symlink(join(place, 'elsewhere'), join(at, 'dist'));
    });
    await addEngine(home, source);
    await rm(join(place, 'elsewhere'), { recursive: true });
    expect(await found()).toMatchObject({ ok: true });
  });

  it('adding refuses an installed version, and does not change it', async () => {
    const build = await engineBuild({ version });
    await addEngine(home, build);
    await writeFile(join(home, 'engines', version, 'mark'), 'x');
    const refused = { code: 'conflict', message: textWith(`engine ${version} is already installed`) };
    await expect(addEngine(home, build)).rejects.toMatchObject(refused);
    expect(await readdir(join(home, 'engines', version))).toContain('mark');
    expect(await inside()).toEqual([version]);
  });

  it('adding replaces an installed version only if `mayReplace` allows it', async () => {
    const build = await engineBuild({ version });
    await addEngine(home, build);
    await writeFile(join(home, 'engines', version, 'mark'), 'x');
    const mayReplace = async (): Promise<void> => {
      throw new Error('it is in use');
    };
    await expect(addEngine(home, build, { mayReplace })).rejects.toThrow('it is in use');
    expect(await readdir(join(home, 'engines', version))).toContain('mark');
    const asked: string[] = [];
    await addEngine(home, build, { mayReplace: async (which) => void asked.push(which) });
    expect(asked).toEqual([version]);
    expect(await readdir(join(home, 'engines', version))).not.toContain('mark');
    expect(await inside()).toEqual([version]);
  });

  it('one of several concurrent calls that add the same version succeeds', async () => {
    const build = await engineBuild({ version });
    const outcomes = await Promise.allSettled([1, 2, 3].map(() => addEngine(home, build)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'conflict' });
    expect(await inside()).toEqual([version]);
    expect(await found()).toMatchObject({ ok: true });
  });

  const entry = (at: string): string => join(at, 'dist', 'engine.js');
  it.each<[what: string, spoil: (at: string) => Promise<unknown>, words: string]>([
    ['is not built', (at) => rm(entry(at)), 'it has no dist/engine.js; it may not be built'],
    [
      'has another package name',
      (at) => writeFile(join(at, 'package.json'), '{"name":"x"}'),
      'its name is not millrace',
    ],
    ['has a gap in its migrations', (at) => rm(join(at, 'migrations/tenant/0001_event_log.sql')), 'should be number 1'],
    ['throws', (at) => writeFile(entry(at), 'throw new Error("not today")'), 'cannot be loaded: not today'],
    ['forges an answer', (at) => writeFile(entry(at), 'process.send({ face: null })'), 'sent an invalid message'],
    ['ends its process', (at) => writeFile(entry(at), 'process.exit(3)'), 'it ended its process with 3'],
    ['waits for ever', (at) => writeFile(entry(at), 'await new Promise(() => {})'), 'it ended its process with 13'],
    ['exports no engine', (at) => writeFile(entry(at), 'export {}'), 'exports no engine'],
    [
      'exports an incomplete engine',
      (at) => writeFile(entry(at), 'export const engine = { fetch() {} }'),
      'lacks pending, ',
    ],
  ])('adding refuses an engine that %s, with the reason, and leaves no files', async (_, spoil, words) => {
    const source = await spoilt(spoil);
    await expect(addEngine(home, source)).rejects.toMatchObject({ code: 'bad_request', message: textWith(words) });
    expect(await inside()).toEqual([]);
  });

  it('adding refuses an engine that is too new for this release', async () => {
    const build = await engineBuild({ version, contract: contractNumber + 1 });
    await expect(addEngine(home, build)).rejects.toMatchObject({
      message: textWith('too new; install a newer release'),
    });
  });

  it('adding refuses a missing file, and a file that is not a tarball', async () => {
    await expect(addEngine(home, join(place, 'nothing'))).rejects.toMatchObject({ code: 'not_found' });
    for (const text of ['', 'jobs: []', 'no tarball'.repeat(100), '\0'.repeat(1_024)]) {
      await writeFile(join(place, 'long.yaml'), text);
      await expect(addEngine(home, join(place, 'long.yaml'))).rejects.toMatchObject({
        code: 'bad_request',
        message: textWith('long.yaml is neither a folder nor a tarball'),
      });
    }
  });

  it('adding refuses a tarball in which a file and a folder have the same name, and leaves nothing behind', async () => {
    const [tarball, dist] = [join(place, 'both.tar'), join(place, 'package', 'dist')];
    await mkdir(join(place, 'package'));
    await writeFile(dist, 'a file');
    await run('tar', ['-cf', tarball, '-C', place, 'package/dist']);
    await rm(dist);
    await mkdir(dist);
    await writeFile(join(dist, 'engine.js'), 'below a folder');
    await run('tar', ['-rf', tarball, '-C', place, 'package/dist/engine.js']);
    await expect(addEngine(home, tarball)).rejects.toMatchObject({
      code: 'bad_request',
      message: textWith(
        'both.tar cannot be unpacked: the name "package/dist/engine.js" in it is too long, or belongs to a file',
      ),
    });
    expect(await inside()).toEqual([]);
  });

  it('adding removes files of commands that were killed an hour ago, and keeps younger ones', async () => {
    const [old, young] = ['.adding-old', '.removed-young'].map((name) => join(home, 'engines', name)) as [
      string,
      string,
    ];
    for (const each of [old, young]) await mkdir(each, { recursive: true, mode: 0o700 });
    await utimes(old, new Date(0), new Date(0));
    await addEngine(home, await engineBuild({ version }));
    expect((await inside()).toSorted()).toEqual(['.removed-young', version]);
  });
});

describe('remove engine', () => {
  it('a removed engine is not found any more', async () => {
    await addEngine(home, await engineBuild({ version }));
    await removeEngine(home, version);
    expect(await inside()).toEqual([]);
    expect(await found()).toMatchObject({ ok: false });
  });

  it.each(['9.9.9', '..', '.', '.adding-x', `../engines/${version}`, ''])(
    'removing refuses the unknown engine %j',
    async (name) => {
      await addEngine(home, await engineBuild({ version }));
      await mkdir(join(home, 'engines', '.adding-x'));
      await expect(removeEngine(home, name)).rejects.toMatchObject({ code: 'not_found' });
      expect((await inside()).toSorted()).toEqual(['.adding-x', version]);
    },
  );
});
