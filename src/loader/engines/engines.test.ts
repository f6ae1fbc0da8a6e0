import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { engineBuild, removeEngineBuilds } from '../../../test/harness/engine-builds.ts';
import { textWith } from '../../../test/harness/expected.ts';
import { contractNumber, oldestContract } from '../../contract/engine.ts';
import { engine, engineVersion } from '../../engine/engine.ts';
import { packageFile } from '../../kernel/process/package-files.ts';
import { Engines } from './engines.ts';

const version = '0.2.1-test.1';
let folder: string;
let engines: Engines;
beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'millrace-engines-')), 'engines');
  engines = new Engines(engine, folder);
});
afterEach(() => rm(join(folder, '..'), { recursive: true }));
afterAll(removeEngineBuilds);

const put = async (from: string, as: string): Promise<string> => {
  await cp(from, join(folder, as), { recursive: true });
  return join(folder, as);
};
const detailOf = async (of: string): Promise<string> => {
  const found = await engines.find(of);
  return found.ok ? 'it is there' : found.detail;
};

it('package.json names the contract number of the code', async () => {
  const text = await readFile(packageFile('package.json'), 'utf8');
  expect((JSON.parse(text) as { millrace: unknown }).millrace).toEqual({ contract: contractNumber });
});

describe('engines of an installation', () => {
  it('without a folder, the only engine is the one of this release', async () => {
    expect(await engines.find(engineVersion)).toEqual({ ok: true, engine });
    expect(await engines.list()).toEqual([
      { version: engineVersion, contract: contractNumber, fault: null, running: true },
    ]);
    expect(await detailOf('9.9.9')).toBe(
      `engine 9.9.9 is not here, only ${engineVersion}; add it with \`millrace engine add\``,
    );
    expect([await engines.has(engineVersion), await engines.has('9.9.9')]).toEqual([true, false]);
    expect(await engines.usable(engineVersion)).toEqual({ ok: true });
    expect(await engines.usable('9.9.9')).toEqual({
      ok: false,
      detail: `engine 9.9.9 is not here, only ${engineVersion}; add it with \`millrace engine add\``,
      missing: { version: '9.9.9', available: [engineVersion] },
    });
  });

  it('an engine that is added later is found, imported once for concurrent calls, and kept', async () => {
    expect(await engines.has(version)).toBe(false);
    await put(await engineBuild({ version }), version);
    expect(await engines.has(version)).toBe(true);
    const found = await Promise.all(Array.from({ length: 5 }, () => engines.find(version)));
    expect(found[0]).toMatchObject({ ok: true, engine: { version, contract: contractNumber } });
    const loaded = found.map((each) => each.ok && each.engine);
    expect(new Set(loaded).size).toBe(1);
    expect(loaded[0]).not.toBe(engine);
    await rm(join(folder, version), { recursive: true });
    expect(await engines.find(version)).toEqual(found[0]);
  });

  it('an engine that replaces a loaded one is loaded again', async () => {
    const first = await put(await engineBuild({ version, contract: contractNumber }), version);
    const before = await engines.find(version);
    await rename(first, join(folder, '.removed-1'));
    await put(await engineBuild({ version, code: '// mended' }), version);
    const after = await Promise.all(Array.from({ length: 3 }, () => engines.find(version)));
    const [loaded] = after;
    expect(loaded).toMatchObject({ ok: true, engine: { version } });
    expect(new Set(after.map((each) => each.ok && each.engine)).size).toBe(1);
    expect(loaded?.ok && before.ok && loaded.engine === before.engine).toBe(false);
  });

  it('engines are listed newest first, without those that are being added', async () => {
    const build = await engineBuild({ version });
    await put(build, version);
    await put(build, '.adding-1');
    expect((await engines.list()).map((each) => [each.version, each.running, each.fault])).toEqual([
      [version, false, null],
      [engineVersion, true, null],
    ]);
  });

  it('a copy of the running release in the folder is ignored', async () => {
    await put(await engineBuild({ version: engineVersion }), engineVersion);
    expect(await engines.find(engineVersion)).toEqual({ ok: true, engine });
    expect(await engines.list()).toHaveLength(1);
  });
});

describe('engine that cannot be used', () => {
  it.each([
    [oldestContract - 1, `speaks contract ${oldestContract - 1}, this release ${contractNumber}: too old`],
    [contractNumber + 1, `speaks contract ${contractNumber + 1}, this release ${contractNumber}: too new`],
  ])('an engine of contract %i is reported as unusable, and its code is not run', async (contract, words) => {
    const code = 'throw new Error("it was run");';
    await put(await engineBuild({ version, contract, code }), version);
    expect(await detailOf(version)).toContain(`engine ${version} ${words}`);
    expect(await engines.list()).toContainEqual({ version, contract, fault: textWith(words), running: false });
    expect(await engines.has(version)).toBe(false);
  });

  const broken: readonly (readonly [what: string, spoil: (at: string) => Promise<unknown>, words: string])[] = [
    ['without package.json', (at) => rm(join(at, 'package.json')), 'it has no package.json'],
    ['with a broken package.json', (at) => writeFile(join(at, 'package.json'), '{'), 'its package.json is not JSON'],
    [
      'that is another package',
      (at) => writeFile(join(at, 'package.json'), '{"name":"left-pad","version":"1.0.0"}'),
      'its name is not millrace; it names no contract (millrace.contract)',
    ],
    [
      'of a release before contract numbers',
      (at) => writeFile(join(at, 'package.json'), `{"name":"millrace","version":"${version}"}`),
      'older than side-by-side engines',
    ],
    [
      'that is not built',
      (at) => rm(join(at, 'dist'), { recursive: true }),
      'it has no dist/engine.js; it may not be built',
    ],
    ['without migrations', (at) => rm(join(at, 'migrations'), { recursive: true }), 'it has no migrations/tenant'],
  ];
  it.each(broken)('an engine %s is reported as unusable', async (_, spoil, words) => {
    await spoil(await put(await engineBuild({ version }), version));
    expect(await detailOf(version)).toContain(words);
    expect(await engines.list()).toContainEqual(
      expect.objectContaining({ version, fault: textWith(words), running: false }),
    );
  });

  it('an engine in a folder with the name of another version is reported as unusable', async () => {
    await put(await engineBuild({ version }), '7.0.0');
    expect(await detailOf('7.0.0')).toBe(`the folder 7.0.0 holds engine ${version}`);
  });

  it.each([
    ['throws', 'throw new Error("not today");', 'not today'],
    ['does not parse', 'this is no code', ''],
    ['exports nothing', 'export {};', 'its dist/engine.js exports no engine'],
    ['lacks a part', `export const engine = { version: "${version}" };`, 'its engine lacks pending, migrate, '],
  ])('an engine whose code %s is reported as unusable, and found once it is repaired', async (_, code, words) => {
    const build = await engineBuild({ version });
    const at = await put(build, version);
    await writeFile(join(at, 'dist', 'engine.js'), code);
    expect(await detailOf(version)).toContain(`engine ${version} cannot be loaded: ${words}`);
    expect(await detailOf(version)).toContain(`engine ${version} cannot be loaded: ${words}`);
    await mkdir(join(folder, '.old'));
    await rename(at, join(folder, '.old', version));
    await put(build, version);
    expect(await engines.find(version)).toMatchObject({ ok: true, engine: { version } });
  });

  it('a list of tried engines says whether their code loads, and tries again once a file has changed', async () => {
    const at = await put(await engineBuild({ version }), version);
    const tried = async (waitMs = 20_000) => (await engines.listTried(waitMs)).find((each) => each.version === version);
    expect(await tried()).toMatchObject({ loads: true, fault: null });
    const [chunk = ''] = await readdir(join(at, 'dist', 'chunks'));
    await writeFile(join(at, 'dist', 'chunks', chunk), 'throw new Error("damaged")');
    expect(await tried()).toMatchObject({ loads: false, fault: textWith('its code cannot be loaded: ') });
    await writeFile(join(at, 'dist', 'engine.js'), 'await new Promise(() => setInterval(() => {}, 1_000))');
    expect(await tried(0)).toMatchObject({ loads: null, fault: null });
  });

  it('an engine whose code has another contract than its package.json is reported as unusable', async () => {
    const [promised, spoken] = [contractNumber, contractNumber + 1];
    const at = await put(await engineBuild({ version, contract: spoken }), version);
    const text = await readFile(join(at, 'package.json'), 'utf8');
    await writeFile(join(at, 'package.json'), text.replace(`"contract": ${spoken}`, `"contract": ${promised}`));
    const words = `its package.json names contract ${promised}, but its engine says ${spoken}`;
    expect(await detailOf(version)).toBe(`engine ${version} cannot be loaded: ${words}`);
  });
});
