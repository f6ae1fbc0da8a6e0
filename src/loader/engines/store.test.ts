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

/** A copy of the build, with something done to it. */
async function spoilt(spoil: (at: string) => Promise<unknown>): Promise<string> {
  const at = join(place, 'spoilt');
  await cp(await engineBuild({ version }), at, { recursive: true });
  await spoil(at);
  return at;
}

describe('adding an engine', () => {
  it('takes of a folder what an engine is, and nothing else; then it is found', async () => {
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

  it('takes what `npm pack` has packed', async () => {
    const build = await engineBuild({ version });
    const run = promisify(execFile);
    await run('npm', ['pack', '--pack-destination', place], { cwd: build });
    const migrations = await migrationCount(build);
    const added = await addEngine(home, join(place, `millrace-${version}.tgz`));
    expect(added).toEqual({ version, contract: contractNumber, migrations });
    expect(await found()).toMatchObject({ ok: true, engine: { version } });
  });

  it('copies what a link in the folder leads to', async () => {
    const source = await spoilt(async (at) => {
      await cp(join(at, 'dist'), join(place, 'elsewhere'), { recursive: true });
      await rm(join(at, 'dist'), { recursive: true });
      await symlink(join(place, 'elsewhere'), join(at, 'dist'));
    });
    await addEngine(home, source);
    await rm(join(place, 'elsewhere'), { recursive: true });
    expect(await found()).toMatchObject({ ok: true });
  });

  it('refuses a version that is there, and leaves that as it is', async () => {
    const build = await engineBuild({ version });
    await addEngine(home, build);
    await writeFile(join(home, 'engines', version, 'mark'), 'x');
    const refused = { code: 'conflict', message: textWith(`engine ${version} is here already`) };
    await expect(addEngine(home, build)).rejects.toMatchObject(refused);
    expect(await readdir(join(home, 'engines', version))).toContain('mark');
    expect(await inside()).toEqual([version]);
  });

  it('replaces it where that is allowed, and not where it is not', async () => {
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

  it('succeeds for one of several that add the same at once', async () => {
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
    ['has a name of its own', (at) => writeFile(join(at, 'package.json'), '{"name":"x"}'), 'its name is not millrace'],
    ['has a gap in its migrations', (at) => rm(join(at, 'migrations/tenant/0001_event_log.sql')), 'should be number 1'],
    ['throws', (at) => writeFile(entry(at), 'throw new Error("not today")'), 'cannot be loaded: not today'],
    ['ends its process', (at) => writeFile(entry(at), 'process.exit(3)'), 'it ended its process with 3'],
    ['waits for ever', (at) => writeFile(entry(at), 'await new Promise(() => {})'), 'it ended its process with 13'],
    ['exports no engine', (at) => writeFile(entry(at), 'export {}'), 'exports no engine'],
    ['exports half of one', (at) => writeFile(entry(at), 'export const engine = { fetch() {} }'), 'lacks pending, '],
  ])('refuses what %s, says why, and leaves nothing behind', async (_, spoil, words) => {
    const source = await spoilt(spoil);
    await expect(addEngine(home, source)).rejects.toMatchObject({ code: 'bad_request', message: textWith(words) });
    expect(await inside()).toEqual([]);
  });

  it('refuses an engine that is too new for this release', async () => {
    const build = await engineBuild({ version, contract: contractNumber + 1 });
    await expect(addEngine(home, build)).rejects.toMatchObject({
      message: textWith('too new; install a newer release'),
    });
  });

  it('refuses what is not there, and what is no tarball', async () => {
    await expect(addEngine(home, join(place, 'nothing'))).rejects.toMatchObject({ code: 'not_found' });
    for (const text of ['', 'jobs: []', 'no tarball'.repeat(100), '\0'.repeat(1_024)]) {
      await writeFile(join(place, 'long.yaml'), text);
      await expect(addEngine(home, join(place, 'long.yaml'))).rejects.toMatchObject({
        code: 'bad_request',
        message: textWith('long.yaml is neither a folder nor a tarball'),
      });
    }
  });

  it('tidies up after commands that were killed long ago, and leaves those alone that may be at work', async () => {
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

describe('removing an engine', () => {
  it('removes it', async () => {
    await addEngine(home, await engineBuild({ version }));
    await removeEngine(home, version);
    expect(await inside()).toEqual([]);
    expect(await found()).toMatchObject({ ok: false });
  });

  it.each(['9.9.9', '..', '.', '.adding-x', `../engines/${version}`, ''])('knows no engine %j', async (name) => {
    await addEngine(home, await engineBuild({ version }));
    await mkdir(join(home, 'engines', '.adding-x'));
    await expect(removeEngine(home, name)).rejects.toMatchObject({ code: 'not_found' });
    expect((await inside()).toSorted()).toEqual(['.adding-x', version]);
  });
});
