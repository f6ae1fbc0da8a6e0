/**
 * Engines of other versions, really built: this source with changes that can be seen from outside, bundled as a release
 * is, in a folder that `millrace engine add` takes.
 *
 * Each differs in its migrations (tables of its own, and what the test adds), in an API answer (`GET /api/status` says
 * which build answers) and in its scheduler (each firing is noted in `build_firing`, and whatever stands in
 * `build_mischief` when it starts, it does).
 */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'rolldown';
import { bundle } from '../../scripts/bundle.js';
import { contractNumber } from '../../src/contract/engine.ts';
import { composeFunctionSet } from '../../src/postgres/function-set.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

export interface BuildOptions {
  /** Such as 0.2.1-test.1. */
  readonly version: string;
  /**
   * More migrations, each a text of SQL; the first is `NNNN_build_2.sql`. Builds that shall follow each other begin with
   * the same.
   */
  readonly migrations?: readonly string[];
  readonly contract?: number;
  /** Put at the top of its code. */
  readonly code?: string;
}

/** What a scheduler of a build does where a row of `millrace.build_mischief` says so; read when it starts. */
export type Mischief =
  /** Rejects its start. */
  | 'throws'
  /** Its start never comes to an end. */
  | 'never-starts'
  /** Starts, and its probe never answers. */
  | 'hangs'
  /** Starts, and its probe rejects. */
  | 'stuck'
  /** Keeps the process from doing anything else while it starts, for ever. */
  | 'spins'
  /** Starts, and soon keeps the process from doing anything else, for ever. */
  | 'blocks'
  /** As `blocks`, when it has run for 15 s. */
  | 'blocks-later'
  /** Starts, and takes ever more memory outside of its heap, about 100 MB a second. */
  | 'leaks'
  /** As `leaks`, of its heap. */
  | 'leaks-heap'
  /** Starts, and soon ends its process. */
  | 'exits'
  /** Starts, and its stop never comes to an end. */
  | 'never-stops';

/** Migrations for tests. */
export const failingMigration = 'create table half_way (id integer); select 1 / 0;';
export const slowMigration = (seconds: number): string =>
  `create table slow (id integer); select pg_sleep(${seconds});`;

const tables = `
create table build_firing (build text not null, fired integer not null, at timestamptz not null default clock_timestamp());
create table build_mischief (kind text not null);
`;

const made = new Map<string, Promise<string>>();

/** The folder of such an engine; the same options give the same one. */
export function engineBuild(options: BuildOptions): Promise<string> {
  const key = JSON.stringify(options);
  const known = made.get(key) ?? make(options);
  made.set(key, known);
  return known;
}

/** When a suite is done. */
export async function removeEngineBuilds(): Promise<void> {
  const folders = await Promise.allSettled(made.values());
  made.clear();
  for (const each of folders) if (each.status === 'fulfilled') await rm(each.value, { recursive: true, force: true });
}

async function make(options: BuildOptions): Promise<string> {
  const { version, migrations = [], contract = contractNumber } = options;
  const folder = await mkdtemp(join(tmpdir(), 'millrace-engine-'));
  const to = join(folder, 'migrations', 'tenant');
  await cp(join(root, 'migrations', 'tenant'), to, { recursive: true });
  const have = (await readdir(to)).filter((name) => name.endsWith('.sql')).length;
  for (const [i, text] of [tables, ...migrations].entries())
    await writeFile(join(to, `${String(have + i + 1).padStart(4, '0')}_build_${i + 1}.sql`), text);
  await writeFile(join(folder, 'package.json'), JSON.stringify(await manifest(version, contract), null, 2));
  const entries = { engine: 'src/engine/engine.ts', 'document-thread': 'src/jobs/document/thread.ts' };
  await bundle(entries, join(folder, 'dist'), [changes(options)]);
  const { text } = await composeFunctionSet(join(root, 'src'), 'tenant');
  await mkdir(join(folder, 'dist', 'sql'));
  await writeFile(join(folder, 'dist', 'sql', 'tenant.sql'), text);
  return folder;
}

/** As ours, but for its version, and without scripts: packing it builds nothing. */
async function manifest(version: string, contract: number): Promise<object> {
  const ours = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as object;
  return { ...ours, version, millrace: { contract }, scripts: {}, workspaces: undefined };
}

/** Where in the source, what stands there, and what shall. */
type Change = readonly [file: string, from: string, to: string];

function changes({ version, contract, code = '' }: BuildOptions): Plugin {
  const name = JSON.stringify(version);
  const fired = 'const outcome = await fireTriggers(db, firings, how);';
  const list: readonly Change[] = [
    ['src/api/fleet/handlers.ts', 'return { num_projects:', `return { build: ${name}, num_projects:`],
    [
      'src/scheduler/triggers.ts',
      fired,
      `${fired}\nawait ctx.pool.query('insert into build_firing (build, fired) values ($1, $2)', [${name}, outcome.fired]);`,
    ],
    ['src/engine/engine.ts', 'scheduler: makeScheduler,', `scheduler: (ctx) => withMischief(ctx, makeScheduler(ctx)),`],
    ['src/engine/engine.ts', 'export const engineVersion', `${code}\n${mischief}\nexport const engineVersion`],
    ...(contract === undefined
      ? []
      : ([['src/engine/engine.ts', 'contract: contractNumber,', `contract: ${contract},`]] as const)),
  ];
  return { name: 'changes', transform: (text, id) => list.reduce((sum, change) => changed(sum, id, change), text) };
}

function changed(text: string, id: string, [file, from, to]: Change): string {
  if (id !== join(root, file)) return text;
  if (!text.includes(from)) throw new Error(`${file} no longer says ${from}: this harness must follow`);
  return text.replace(from, () => to);
}

const mischief = `
function withMischief(ctx: any, scheduler: any): any {
  const never = () => new Promise<never>(() => {});
  const soon = (work: () => void) => void setTimeout(work, 200);
  let kinds = new Set<string>();
  const hoard: unknown[] = [];
  return {
    ...scheduler,
    async start() {
      const { rows } = await ctx.pool.query('select kind from build_mischief');
      kinds = new Set(rows.map((row: { kind: string }) => row.kind));
      if (kinds.has('throws')) throw new Error('mischief: it will not start');
      if (kinds.has('never-starts')) await never();
      const spin = () => { for (;;); };
      if (kinds.has('spins')) spin();
      await scheduler.start();
      if (kinds.has('blocks')) soon(spin);
      if (kinds.has('blocks-later')) setTimeout(spin, 15_000);
      if (kinds.has('exits')) soon(() => process.exit(7));
      if (kinds.has('leaks')) setInterval(() => hoard.push(Buffer.alloc(10_000_000, 1)), 100);
      const objects = () => Array.from({ length: 100_000 }, (_, i) => ({ i, text: 'text ' + i }));
      if (kinds.has('leaks-heap')) setInterval(() => hoard.push(objects()), 100);
    },
    async stop() {
      if (kinds.has('never-stops')) await never();
      await scheduler.stop();
    },
    async probe() {
      if (kinds.has('hangs')) await never();
      if (kinds.has('stuck')) throw new Error('mischief: it is stuck');
      await scheduler.probe();
    },
  };
}
`;
