/** Compiles modules of src/ to separate JavaScript files, for tests that load several of them in another process. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const repository = new URL('../../', import.meta.url).pathname;

/** Compiles a module and its imports into a new folder, with a link to the installed packages. */
export function compileInto(folder: string, source: string): void {
  mkdirSync(folder);
  const options = {
    noEmit: false,
    rootDir: `${repository}src`,
    outDir: folder,
    typeRoots: [`${repository}node_modules/@types`],
  };
  const files = [`${repository}src/${source}`];
  const config = { extends: `${repository}tsconfig.json`, compilerOptions: options, files, include: [] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  symlinkSync(`${repository}node_modules`, join(folder, 'node_modules'));
  execFileSync(`${repository}node_modules/.bin/tsc`, ['-p', folder]);
}
