/** Code of src/ as a few files that need nothing but Node: how dist/ is made, and engines of other versions in tests. */
import { root } from './command.js';

/** What is asked for only if it is there. */
const optional = ['pg-native', 'pg-cloudflare', 'cloudflare:sockets', 'bufferutil', 'utf-8-validate'];

/**
 * @param {Readonly<Record<string, string>>} entries name in `to` → file, relative to the repository
 * @param {string} to
 * @param {readonly import('rolldown').Plugin[]} [plugins] what changes the code; there are no source maps then
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
