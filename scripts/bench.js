/**
 * `npm run bench -- NAME [flags]`: builds what has changed, bundles bench/ into one file (Node 20 loads no .ts) and runs
 * it in this process. Needs nothing after `npm ci`.
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { build } from './build.js';
import { messageOf, root } from './command.js';

/** Inside the package, because the product finds its own files relative to its code. */
const cache = join(root, 'node_modules', '.cache');

/**
 * Keeps scripts/bundle.js out of the bundle: it finds the repository relative to its own file.
 *
 * @param {string} id
 */
function leaveBundler(id) {
  if (!id.endsWith('/scripts/bundle.js')) return undefined;
  return { id: pathToFileURL(join(root, 'scripts', 'bundle.js')).href, external: true };
}

/** @returns {Promise<string>} */
async function bundle() {
  const file = join(cache, `millrace-bench-${process.pid}.mjs`);
  await mkdir(cache, { recursive: true });
  const input = join(root, 'bench', 'main.ts');
  const plugins = [{ name: 'keep bundle.js external', resolveId: leaveBundler }];
  const bundled = await rolldown({
    cwd: root,
    input,
    plugins,
    platform: 'node',
    // loads parts of itself by name
    external: [/^node:/, 'graphile-worker', '@dbos-inc/dbos-sdk'],
    logLevel: 'silent',
  });
  await bundled.write({ file, format: 'esm', codeSplitting: false });
  return file;
}

try {
  await build();
  const file = await bundle();
  try {
    const { main } = /** @type {{ main: (args: string[]) => Promise<number> }} */ (
      await import(pathToFileURL(file).href)
    );
    process.exitCode = await main(process.argv.slice(2));
  } finally {
    await rm(file, { force: true });
  }
} catch (error) {
  console.error(`\nThe benchmark failed. ${error instanceof Error ? error.stack : messageOf(error)}`);
  process.exitCode = 1;
}
