/**
 * Checks the structure of the source tree: imports point downwards and form no cycles, folders and files are small, and
 * each file begins with a comment about its purpose.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Rooms of src/ from top to bottom: each may import itself and those below it, types included. */
const rooms = [
  ['main.ts', 'index.ts', 'app', 'cli', 'config.ts'],
  ['gateway', 'tenants', 'courier', 'conductor', 'launcher', 'hosts', 'loader', 'control', 'worker'],
  ['engine', 'api', 'scheduler', 'runs'],
  ['jobs', 'bus', 'flows', 'runtimes', 'calendar', 'documents', 'events', 'errands', 'broker', 'waterwheel'],
  ['http', 'outbound', 'postgres', 'contract', 'kernel', 'errors.ts'],
].flat();

/** Rooms that may not import everything below them, with the reason. */
const restricted: Readonly<Record<string, { readonly to: RegExp; readonly why: string }>> = {
  cli: { to: /^postgres$/, why: 'the command line uses HTTP only' },
  'config.ts': { to: /^(?!kernel$|errors\.ts$)/, why: 'it is loaded before everything else' },
  http: { to: /^postgres$/, why: 'its client runs in browsers, too' },
  outbound: { to: /^(?!kernel$|errors\.ts$)/, why: 'couriers and workers load it, and neither knows the other' },
  worker: { to: /^postgres$/, why: 'a worker never has database access' },
};

const checkedFolders = ['src', 'test', 'scripts', 'bench', 'ui/src', 'migrations'];
const buckets = /(^|\/)(utils?|helpers?|types|lib)(\.\w+)*(\/|$)/;
/** The module that both server and browser run, and the endpoint tables that give its types. */
const sharedClient = 'src/http/client.ts';
const endpointTypes = /^src\/(api\/|gateway\/(installation|tenants)\/endpoints\.ts$)/;
const maxFileLines = 400;
const maxFilesInFolder = 30;
/** A trigger depends on this function, so the table's migration creates it. */
const triggerFunction = 'keep_former_name';

interface SourceFile {
  /** Relative to the repository, with slashes. */
  readonly path: string;
  readonly text: string;
}

interface Import {
  readonly specifier: string;
  /** The imported path; undefined for packages. */
  readonly target: string | undefined;
  readonly typeOnly: boolean;
}

function importsOf(file: SourceFile): Import[] {
  const statement = /^(?:import|export)\b(\s+type\b)?(?:[^'";]*?\bfrom)?\s*['"]([^'"]+)['"]/gm;
  const call = /\bimport\(\s*()['"]([^'"]+)['"]/g;
  return [statement, call]
    .flatMap((pattern) => [...file.text.matchAll(pattern)])
    .map(([, type = '', specifier = '']) => ({
      specifier,
      target: specifier.startsWith('.') ? posix.join(posix.dirname(file.path), specifier) : undefined,
      typeOnly: type !== '',
    }));
}

/** The room of a path in src/; undefined for other paths. */
function roomOf(path: string): string | undefined {
  return path.startsWith('src/') ? path.split('/')[1]?.replace('.test.ts', '.ts') : undefined;
}

function isTest(path: string): boolean {
  return path.endsWith('.test.ts');
}

function upwardImports(file: SourceFile): string[] {
  const room = roomOf(file.path);
  if (room === undefined) return [];
  if (!rooms.includes(room)) return [`${file.path}: src/${room} is not a room`];
  return importsOf(file).flatMap(({ target }) => {
    const why = target === undefined ? undefined : explainForbidden(file.path, room, target);
    return why === undefined ? [] : [`${file.path} imports ${target}: ${why}`];
  });
}

function explainForbidden(path: string, room: string, target: string): string | undefined {
  const other = roomOf(target);
  if (other === undefined) {
    return isTest(path) && target.startsWith('test/') ? undefined : 'src/ imports nothing outside of it';
  }
  if (room === other) return undefined;
  if (!rooms.includes(other)) return `src/${other} is not a room`;
  // tests may use rooms above for their setup
  if (rooms.indexOf(other) < rooms.indexOf(room) && !isTest(path)) return `${other} is above ${room}`;
  return restricted[room]?.to.test(other) ? restricted[room].why : undefined;
}

function uiImports(file: SourceFile): string[] {
  if (!file.path.startsWith('ui/')) return [];
  return importsOf(file)
    .filter(({ specifier, target }) => specifier === 'millrace' || (target !== undefined && !target.startsWith('ui/')))
    .filter(({ target, typeOnly }) => !(typeOnly && endpointTypes.test(target ?? '')) && target !== sharedClient)
    .map(
      ({ specifier }) => `${file.path} imports ${specifier}: the UI may import the typed client and types of endpoints`,
    );
}

function bucketNames(file: SourceFile): string[] {
  const mentioned = importsOf(file).flatMap(({ target }) => target ?? []);
  return [file.path, ...mentioned]
    .filter((path) => buckets.test(path))
    .map((path) => `${file.path}: ${path} is a bucket`);
}

function missingHeader(file: SourceFile): string[] {
  const named = /^(src|scripts|test\/harness|migrations)\//.test(file.path) && !isTest(file.path);
  return !named || /^(#!.*\n)?(\/[/*]|-- )/.test(file.text) ? [] : [`${file.path} has no header comment`];
}

function tooLong(file: SourceFile): string[] {
  const lines = file.text.trimEnd().split('\n').length;
  return lines > maxFileLines ? [`${file.path} has ${lines} lines, at most ${maxFileLines} are allowed`] : [];
}

/** Functions belong into the `sql` folder of a room; migrations create tables only. */
function misplacedFunctions({ path, text }: SourceFile): string[] {
  if (!path.endsWith('.sql')) return [];
  const made = [...text.matchAll(/^\s*create (?:or replace )?function (\w+)/gm)].map(([, name]) => name);
  if (path.startsWith('migrations/'))
    return made.filter((name) => name !== triggerFunction).map((name) => `${path} creates ${name}`);
  const expected = /^src\/\w+\/sql\/(\w+)\.sql$/.exec(path)?.[1];
  const isRight = expected !== undefined && made.length > 0 && made.every((name) => name === expected);
  return isRight ? [] : [`${path} must define exactly one function, named like the file, in src/<room>/sql`];
}

/** Source folders with too many files, tests included. */
function crowdedFolders(files: readonly SourceFile[]): string[] {
  const folders = files.map(({ path }) => posix.dirname(path)).filter((folder) => /^(src|ui\/src)(\/|$)/.test(folder));
  return [...new Set(folders)]
    .map((folder) => ({ folder, size: folders.filter((each) => each === folder).length }))
    .filter(({ size }) => size > maxFilesInFolder)
    .map(({ folder, size }) => `${folder} has ${size} files`);
}

/** Files that import each other, type imports included: one line per group. */
function importCycles(files: readonly SourceFile[]): string[] {
  const targets = new Map(files.map((file) => [file.path, importsOf(file).flatMap(({ target }) => target ?? [])]));
  const reach = (from: string): Set<string> => {
    const seen = new Set<string>();
    const left = [...(targets.get(from) ?? [])];
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      if (seen.has(next) || !targets.has(next)) continue;
      seen.add(next);
      left.push(...(targets.get(next) ?? []));
    }
    return seen;
  };
  const reached = new Map([...targets.keys()].map((path) => [path, reach(path)]));
  const cycleOf = (path: string): string =>
    [...(reached.get(path) ?? [])]
      .filter((other) => reached.get(other)?.has(path) === true)
      .toSorted()
      .join(' ');
  return [...new Set([...targets.keys()].map(cycleOf))].filter((cycle) => cycle !== '');
}

function sources(): SourceFile[] {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  return checkedFolders
    .filter((folder) => existsSync(root + folder))
    .flatMap((folder) =>
      readdirSync(root + folder, { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
    )
    .filter((path) => /\.(ts|tsx|js|css|sql)$/.test(path) && !path.startsWith('test/fixtures/'))
    .map((path) => ({ path, text: readFileSync(root + path, 'utf8') }));
}

const rules = { upwardImports, uiImports, bucketNames, missingHeader, misplacedFunctions };

describe('source tree', () => {
  const files = sources();
  const faults = (rule: (file: SourceFile) => string[]): string[] => files.flatMap(rule);

  it('the check finds source files', () => expect(files.map((file) => file.path)).toContain('src/kernel/sql.ts'));
  it('rooms import only rooms below them', () => expect(faults(upwardImports)).toEqual([]));
  it('the UI imports nothing but the typed client and the types of endpoints', () =>
    expect(faults(uiImports)).toEqual([]));
  it('no files import each other, type imports included', () =>
    expect(importCycles(files.filter(({ path }) => /^(src|ui)\//.test(path) && !isTest(path)))).toEqual([]));
  it(`no folder has more than ${maxFilesInFolder} files`, () => expect(crowdedFolders(files)).toEqual([]));
  it('no file or folder is called utils, helpers, types or lib', () => expect(faults(bucketNames)).toEqual([]));
  it('each file begins with a comment about its purpose', () => expect(faults(missingHeader)).toEqual([]));
  it('each SQL function has its own file, in the room that calls it', () => {
    expect(files.filter(({ path }) => path.endsWith('.sql')).length).toBeGreaterThan(60);
    expect(faults(misplacedFunctions)).toEqual([]);
  });
  it(`no file has more than ${maxFileLines} lines`, () => expect(faults(tooLong)).toEqual([]));
});

describe('rules', () => {
  const bad: [keyof typeof rules, string, string][] = [
    ['upwardImports', 'src/kernel/sql.ts', "import { pools } from '../postgres/pools.ts';"],
    ['upwardImports', 'src/events/log.ts', "import type { Job } from '../jobs/job.ts';"],
    ['upwardImports', 'src/api/jobs.ts', "import {\n  type Engine,\n  assemble,\n} from '../engine/engine.ts';"],
    ['upwardImports', 'src/api/jobs.ts', "export * from '../engine/engine.ts';"],
    ['upwardImports', 'src/jobs/job.ts', "const { main } = await import('../main.ts');"],
    ['upwardImports', 'src/worker/worker.ts', "import { pools } from '../postgres/pools.ts';"],
    ['upwardImports', 'src/config.ts', "import { job } from './jobs/job.ts';"],
    ['upwardImports', 'src/kernel/id.ts', "import { given } from '../../test/harness/given.ts';"],
    ['upwardImports', 'src/models/job.ts', ''],
    ['upwardImports', 'src/jobs/job.ts', "import '../models/job.ts';"],
    ['uiImports', 'ui/src/page.tsx', "import { routes } from '../../src/api/routes.ts';"],
    ['uiImports', 'ui/src/page.tsx', "import { type Routes } from '../../src/api/routes.ts';"],
    ['uiImports', 'ui/src/page.tsx', "import type { Job } from '../../src/jobs/job.ts';"],
    ['bucketNames', 'src/jobs/types.ts', ''],
    ['bucketNames', 'src/utils/text.ts', ''],
    ['bucketNames', 'src/jobs/job.ts', "import { x } from './helpers.ts';"],
    ['missingHeader', 'src/jobs/job.ts', "import { x } from './graph.ts';"],
    ['missingHeader', 'src/jobs/sql/f.sql', 'create or replace function f()'],
    ['misplacedFunctions', 'src/jobs/sql/f.sql', 'create or replace function g()'],
    ['misplacedFunctions', 'src/jobs/f.sql', 'create or replace function f()'],
    ['misplacedFunctions', 'migrations/tenant/0012_f.sql', 'create function f()'],
  ];
  it.each(bad)('%s finds the fault in %s: %s', (rule, path, text) => {
    expect(rules[rule]({ path, text })).toHaveLength(1);
  });

  const good: [keyof typeof rules, string, string][] = [
    [
      'upwardImports',
      'src/gateway/tenants/handlers.ts',
      "import { load } from '../launcher/loader.ts';\nimport { z } from 'zod';",
    ],
    ['upwardImports', 'src/kernel/sql.ts', "import { MillraceError } from '../errors.ts';\nimport './id.ts';"],
    ['upwardImports', 'src/kernel/sql.test.ts', "import { given } from '../../test/harness/given.ts';"],
    ['uiImports', 'ui/src/client.ts', "import { makeClient } from '../../src/http/client.ts';"],
    ['uiImports', 'ui/src/page.tsx', "import type { Routes } from '../../src/api/routes.ts';\nimport './page.css';"],
    ['bucketNames', 'src/jobs/job-types.ts', "import { x } from 'pg/lib/utils';"],
    ['missingHeader', 'src/jobs/sql/f.sql', '-- Does f.\ncreate or replace function f()'],
    ['misplacedFunctions', 'src/jobs/sql/f.sql', '-- Does f.\ncreate or replace function f()'],
    ['misplacedFunctions', 'migrations/tenant/0012_t.sql', 'create table t ()'],
    ['missingHeader', 'src/main.ts', '#!/usr/bin/env node\n/** argv → role. */'],
  ];
  it.each(good)('%s finds no fault in %s: %s', (rule, path, text) => {
    expect(rules[rule]({ path, text })).toEqual([]);
  });

  it('importCycles names the files of a cycle and no others', () => {
    const file = (name: string, imported: string): SourceFile => ({
      path: `src/jobs/${name}.ts`,
      text: `import type { X } from './${imported}.ts';`,
    });
    const cycle = [file('a', 'b'), file('b', 'c'), file('c', 'a')];
    expect(importCycles([...cycle, file('d', 'a')])).toEqual(['src/jobs/a.ts src/jobs/b.ts src/jobs/c.ts']);
    expect(importCycles([file('a', 'b'), file('b', 'c')])).toEqual([]);
  });

  it('crowdedFolders reports a folder with one file more than allowed', () => {
    const folder = (size: number): SourceFile[] =>
      Array.from({ length: size }, (_, i) => ({ path: `src/jobs/${i}.ts`, text: '' }));
    expect(crowdedFolders(folder(maxFilesInFolder))).toEqual([]);
    expect(crowdedFolders(folder(maxFilesInFolder + 1))).toEqual([`src/jobs has ${maxFilesInFolder + 1} files`]);
  });

  it('tooLong reports a file with one line more than allowed', () => {
    const file = (lines: number): SourceFile => ({ path: 'src/jobs/job.ts', text: 'x;\n'.repeat(lines) });
    expect(tooLong(file(maxFileLines))).toEqual([]);
    expect(tooLong(file(maxFileLines + 1))).toHaveLength(1);
  });
});
