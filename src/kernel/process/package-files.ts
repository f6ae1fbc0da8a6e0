/** The package's own files, found from the place of this code: in src/ or bundled in dist/. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

function findRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}

const root = findRoot();

/** Whether this code runs from src/, as in tests, rather than from a build. */
export const isSource: boolean = import.meta.url.endsWith('.ts');

export function packageFile(...path: readonly string[]): string {
  return join(root, ...path);
}

const manifest = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { version: string };
export const packageVersion: string = manifest.version;
