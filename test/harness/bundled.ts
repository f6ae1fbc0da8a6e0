/** A module of src/ with all it needs as one JavaScript file, for tests that run it in a process of its own. */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

/** The caller removes the folder that the file is in. */
export async function bundled(source: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-bundled-'));
  const file = join(folder, 'module.mjs');
  const input = fileURLToPath(new URL(`../../src/${source}`, import.meta.url));
  const bundle = await rolldown({ input, platform: 'node', external: [/^node:/], logLevel: 'silent' });
  await bundle.write({ file, format: 'esm' });
  return file;
}
