/**
 * Real builds of engines of other versions: this source with changes that are visible from outside, bundled like a release,
 * in a folder that `millrace engine add` accepts.
 *
 * Each build differs in its migrations (its own tables, and those that the test adds), in an API answer (`GET /api/status`
 * names the build) and in its scheduler. The scheduler records each firing in `build_firing`. When it starts, it reads
 * `build_mischief` and misbehaves accordingly.
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
  /** For example 0.2.1-test.1. */
  readonly version: string;
  /**
   * Further migrations, each as SQL text; the first becomes `NNNN_build_2.sql`. Builds that upgrade to each other must begin
   * with the same migrations.
   */
  readonly migrations?: readonly string[];
  readonly contract?: number;
  /** Code inserted into the engine's module. */
  readonly code?: string;
}

/** Misbehaviour of a build's scheduler, from the rows of `millrace.build_mischief` at its start. */
export type Mischief =
  /** Rejects its start. */
  | 'throws'
  /** Its start never completes. */
  | 'never-starts'
  /** Starts, and reports that a vital part makes no progress. */
  | 'hangs'
  /** Starts, and reports that a vital part fails at every attempt. */
  | 'stuck'
  /** Blocks the event loop for ever while it starts. */
  | 'spins'
  /** Starts, and blocks the event loop for ever 0.2 s later. */
  | 'blocks'
  /** As `blocks`, but 15 s after its start. */
  | 'blocks-later'
  /** Starts, and leaks about 100 MB per second outside of the heap. */
  | 'leaks'
  /** As `leaks`, but on the heap. */
  | 'leaks-heap'
  /** Starts, and ends its process 0.2 s later. */
  | 'exits'
  /** Starts, but its stop never completes. */
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

/** Returns the folder of such an engine; the same options give the same folder. */
export function engineBuild(options: BuildOptions): Promise<string> {
  const key = JSON.stringify(options);
  const known = made.get(key) ?? make(options);
  made.set(key, known);
  return known;
}

/** Call this at the end of a suite. */
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

/** Our manifest with another version, and without scripts, so that packing it builds nothing. */
async function manifest(version: string, contract: number): Promise<object> {
  const ours = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as object;
  return { ...ours, version, millrace: { contract }, scripts: {}, workspaces: undefined };
}

/** In `file`, the text `from` is replaced by `to`. */
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
  return { name: 'changes', transform: (text, id) => list.reduce((sum, change) => applyChange(sum, id, change), text) };
}

function applyChange(text: string, id: string, [file, from, to]: Change): string {
  if (id !== join(root, file)) return text;
  if (!text.includes(from)) throw new Error(`${file} no longer contains "${from}": adapt engine-builds.ts`);
  return text.replace(from, () => to);
}

const mischief = `
function withMischief(ctx: any, scheduler: any): any {
  const never = () => new Promise<never>(() => {});
  const soon = (work: () => void) => void setTimeout(work, 200);
  const startedAt = new Date();
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
    faults() {
      const part = { doing: 'mischief', isVital: true, since: startedAt, failingMs: Date.now() - startedAt.getTime() };
      if (kinds.has('hangs')) return [{ ...part, underWayMs: part.failingMs, message: null }];
      if (kinds.has('stuck')) return [{ ...part, message: 'it is stuck' }];
      return scheduler.faults();
    },
  };
}
`;
