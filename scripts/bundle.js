/** Bundles code of src/ into a few files that need nothing but Node: for dist/, and for engines of other versions in tests. */
import { root } from './command.js';

/** Modules that dependencies import only if they are installed. */
const optional = ['pg-native', 'pg-cloudflare', 'cloudflare:sockets', 'bufferutil', 'utf-8-validate'];

/**
 * @param {Readonly<Record<string, string>>} entries name in `to` → file, relative to the repository
 * @param {string} to
 * @param {readonly import('rolldown').Plugin[]} [plugins] plugins that change the code; source maps are off then
 */
export async function bundle(entries, to, plugins = []) {
  const { rolldown } = await import('rolldown');
  const bundled = await rolldown({
    cwd: root,
    input: entries,
    platform: 'node',
    external: [/^node:/, ...optional],
    plugins: [...plugins],
  });
  const names = { entryFileNames: '[name].js', chunkFileNames: 'chunks/[name]-[hash].js' };
  await bundled.write({ dir: to, format: 'esm', sourcemap: plugins.length === 0, ...names });
}
