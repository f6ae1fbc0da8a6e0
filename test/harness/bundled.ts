/** Bundles a module of src/ with its dependencies into one JavaScript file, for tests that run it in a separate process. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

/** Returns the path of the file. The caller removes its folder. */
export async function bundleModule(source: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bundled-'));
  const file = join(folder, 'module.mjs');
  const input = fileURLToPath(new URL(`../../src/${source}`, import.meta.url));
  const bundle = await rolldown({ input, platform: 'node', external: [/^node:/], logLevel: 'silent' });
  await bundle.write({ file, format: 'esm' });
  return file;
}
