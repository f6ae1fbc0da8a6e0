/**
 * The build: rolldown bundles src/ into dist/ (a few files, because hundreds of modules took twice as long to load), tsc
 * writes the declarations, the SQL functions are joined into dist/sql/, and vite builds ui/ into ui/dist/. It runs as
 * `npm run build`, and as `prepare` in `npm ci`.
 *
 * Promises:
 * 1. Nothing is touched unless all parts succeed.
 * 2. Each file is put in place by one rename, dependencies before the files that refer to them, so that a server running
 *    from dist/ never misses one.
 * 3. Files that no source produces any more are removed.
 * 4. A build of unchanged sources is skipped (delete dist/ to force one; `npm ci` always builds, because the stamp is in
 *    node_modules).
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { bundle } from './bundle.js';
import { isMain, messageOf, packageFolder, root, run, seconds } from './command.js';

const deflate = promisify(gzip);
const outputs = { code: join(root, 'dist'), ui: join(root, 'ui', 'dist') };
const inputs = [
  'src',
  'ui',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'scripts/build.js',
  'scripts/bundle.js',
];
const stampFile = join(root, 'node_modules', '.cache', 'millrace-build');
const roomPrefix = '.building-';
const abandonedMs = 10 * 60_000;

/** Builds if sources have changed; throws an error whose message is meant for users. */
export async function build() {
  const startedAt = performance.now();
  const typescript = packageFolder('typescript');
  const vite = packageFolder('vite', join(root, 'ui'));
  if (typescript === undefined || vite === undefined) return withoutTools();
  const stamp = await fingerprint();
  if (isBuilt() && (await readFile(stampFile, 'utf8').catch(() => '')) === stamp) return;
  await removeAbandoned();
  // beside dist/, at its depth, because the paths in source maps are relative
  const room = await mkdtemp(join(root, roomPrefix));
  const uiRoom = join(room, '.ui');
  try {
    await writeFile(join(room, '.gitignore'), '*\n');
    await Promise.all([declare(typescript, room), bundleCode(room), bundleUi(vite, uiRoom), joinFunctions(room)]);
    await chmod(join(room, 'main.js'), 0o755);
    await put(room, outputs.code);
    await put(uiRoom, outputs.ui);
  } finally {
    await rm(room, { recursive: true, force: true });
  }
  await mkdir(dirname(stampFile), { recursive: true });
  await writeFile(stampFile, stamp);
  console.log(`Built dist/ and ui/dist/ in ${seconds(startedAt)}.`);
}

function isBuilt() {
  return existsSync(join(outputs.code, 'main.js')) && existsSync(join(outputs.ui, 'index.html'));
}

function withoutTools() {
  if (!isBuilt())
    throw new Error('dist/ is missing and cannot be built without devDependencies: run `npm ci` without --omit.');
  console.log('Not built, because devDependencies are not installed: dist/ and ui/dist/ stay as they are.');
}

/** One hash over all files that the outputs depend on. */
async function fingerprint() {
  const hash = createHash('sha256');
  for (const input of inputs) {
    for (const file of await filesOf(join(root, input))) {
      hash.update(`\0${relative(root, file)}\0`).update(await readFile(file));
    }
  }
  return hash.digest('hex');
}

/** Removes working folders of builds that were killed. */
async function removeAbandoned() {
  for (const name of await readdir(root)) {
    if (!name.startsWith(roomPrefix)) continue;
    const { mtimeMs } = await stat(join(root, name));
    if (Date.now() - mtimeMs > abandonedMs) await rm(join(root, name), { recursive: true, force: true });
  }
}

/**
 * @param {string} typescript
 * @param {string} to
 */
async function declare(typescript, to) {
  const args = [join(typescript, 'bin', 'tsc'), '-p', 'tsconfig.build.json', '--outDir', to];
  const { code, output } = await run(process.execPath, args, { quiet: true });
  if (code !== 0) throw new Error(`src/ does not compile:\n${output}`);
}

/** @param {string} to */
async function bundleCode(to) {
  const entries = {
    main: 'src/main.ts',
    index: 'src/index.ts',
    engine: 'src/engine/engine.ts',
    'function-host': 'src/runtimes/function/host.ts',
    'container-reaper': 'src/runtimes/docker/container-reaper.ts',
    'document-thread': 'src/jobs/document/thread.ts',
  };
  await bundle(entries, to);
}

/**
 * The SQL functions of src/ as one script per set. The code that joins them is TypeScript, so it is bundled first.
 *
 * @param {string} to
 */
async function joinFunctions(to) {
  const tool = join(to, '.functions');
  await bundle({ set: 'src/postgres/function-set.ts' }, tool);
  /** @type {unknown} */
  const loaded = await import(pathToFileURL(join(tool, 'set.js')).href);
  const { composeFunctionSet } = /** @type {typeof import('../src/postgres/function-set.ts')} */ (loaded);
  await mkdir(join(to, 'sql'), { recursive: true });
  for (const set of /** @type {const} */ (['control', 'tenant'])) {
    const { text } = await composeFunctionSet(join(root, 'src'), set);
    await writeFile(join(to, 'sql', `${set}.sql`), text);
  }
}

/**
 * @param {string} vite
 * @param {string} to
 */
async function bundleUi(vite, to) {
  const args = [join(vite, 'bin', 'vite.js'), 'build', '--outDir', to, '--emptyOutDir', '--logLevel', 'warn'];
  const env = { NODE_ENV: 'production' };
  const { code, output } = await run(process.execPath, args, { cwd: join(root, 'ui'), env, quiet: true });
  if (code !== 0) throw new Error(`ui/ does not build:\n${output}`);
  await compress(to);
}

/**
 * Writes a gzipped copy beside each file that compresses well, for the server to send.
 *
 * @param {string} folder
 */
async function compress(folder) {
  const worth = (await filesOf(folder)).filter((file) => /\.(js|css|html|svg)$/.test(file));
  await Promise.all(
    worth.map(async (file) => writeFile(`${file}.gz`, await deflate(await readFile(file), { level: 9 }))),
  );
}

/**
 * Makes the folder `to` hold exactly the files of `from`. Deeper files go first, because the entry points that refer to
 * them are at the top.
 *
 * @param {string} from
 * @param {string} to
 */
async function put(from, to) {
  const fresh = (await filesOf(from)).map((file) => relative(from, file));
  fresh.sort((a, b) => depth(b) - depth(a));
  for (const file of fresh) {
    await mkdir(dirname(join(to, file)), { recursive: true });
    await rename(join(from, file), join(to, file));
  }
  const wanted = new Set(fresh);
  for (const file of await filesOf(to)) {
    if (!wanted.has(relative(to, file))) await rm(file);
  }
}

/** @param {string} path */
function depth(path) {
  return path.split(sep).length;
}

/**
 * Every file at or below a path in a stable order, without hidden, installed or built files.
 *
 * @param {string} path
 * @returns {Promise<string[]>}
 */
async function filesOf(path) {
  if ((await stat(path)).isFile()) return [path];
  const names = (await readdir(path))
    .toSorted()
    .filter((name) => !name.startsWith('.') && !/^(node_modules|dist)$/.test(name));
  return (await Promise.all(names.map((name) => filesOf(join(path, name))))).flat();
}

if (isMain(import.meta.url)) {
  try {
    await build();
  } catch (error) {
    console.error(`\nThe build failed. ${messageOf(error)}`);
    process.exitCode = 1;
  }
}
