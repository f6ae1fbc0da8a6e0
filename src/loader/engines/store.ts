/**
 * Adds engines to a home, and removes them. A new engine is unpacked and tried in a temporary folder, then renamed into
 * place. Readers therefore see a complete engine or none, and of two processes that add the same version one gets an error.
 */
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MillraceError } from '../../errors.ts';
import { makeHome } from '../../postgres/embedded/home.ts';
import { readMigrations } from '../../postgres/migrate.ts';
import { checkFace, contractFault, EngineFault, type EnginePackage, readEnginePackage } from './package.ts';
import { tryEngine } from './trial.ts';
import { enginesFolder } from './engines.ts';
import { isTarball, readTarball } from './tarball.ts';

export interface AddedEngine extends EnginePackage {
  readonly migrations: number;
}

export interface AddOptions {
  /** Called before an installed engine is replaced; rejects if it must stay. Without this function nothing is replaced. */
  readonly mayReplace?: (version: string) => Promise<void>;
}

/** The files of a release that make an engine. */
const parts = ['package.json', 'dist', 'migrations/tenant'] as const;
const addingPrefix = '.adding-';
const removedPrefix = '.removed-';
const abandonedMs = 3_600_000;

/** `source` is a folder with a release in it, or a tarball of one. */
export async function addEngine(home: string, source: string, options: AddOptions = {}): Promise<AddedEngine> {
  const folder = enginesFolder(await makeHome(home));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await removeAbandoned(folder);
  const room = await mkdtemp(join(folder, addingPrefix));
  try {
    await unpack(source, room);
    const found = await readEnginePackage(room);
    const fault = contractFault(found);
    if (fault !== undefined) throw new EngineFault(fault);
    const target = join(folder, found.version);
    const old = await isThere(target);
    if (old) await (options.mayReplace?.(found.version) ?? Promise.reject(alreadyThere(found.version)));
    const migrations = await countMigrations(room);
    checkFace(await tryEngine(room), found);
    if (old) await discard(folder, target);
    await put(room, target, found.version);
    return { ...found, migrations };
  } catch (error) {
    if (!(error instanceof EngineFault)) throw error;
    throw new MillraceError('bad_request', `${source} is not a usable engine: ${error.message}`, {
      cause: error,
    });
  } finally {
    await rm(room, { recursive: true, force: true });
  }
}

/** Throws if there is no engine of that version. */
export async function removeEngine(home: string, version: string): Promise<void> {
  const folder = enginesFolder(home);
  const names = await readdir(folder).catch((): string[] => []);
  if (version.startsWith('.') || !names.includes(version))
    throw new MillraceError('not_found', `there is no engine ${version} in ${folder}`);
  await discard(folder, join(folder, version));
}

async function unpack(source: string, room: string): Promise<void> {
  const found = await stat(source).catch((error: unknown) => {
    throw new MillraceError('not_found', `there is no ${source}`, { cause: error });
  });
  await (found.isDirectory() ? copyParts(source, room) : unpackTarball(source, room));
}

async function copyParts(source: string, room: string): Promise<void> {
  for (const part of parts) {
    if (!(await isThere(join(source, part)))) continue;
    // copies the targets of symbolic links, so that the engine depends on no other folder
    await cp(join(source, part), join(room, part), { recursive: true, dereference: true });
  }
}

async function unpackTarball(source: string, room: string): Promise<void> {
  const bytes = await readFile(source);
  if (!isTarball(bytes)) throw new MillraceError('bad_request', `${source} is neither a folder nor a tarball`);
  const files = await readTarball(bytes).catch((error: unknown) => {
    if (!(error instanceof MillraceError)) throw error;
    throw new MillraceError('bad_request', `${source} cannot be unpacked: ${error.message}`, { cause: error });
  });
  for (const { path, data } of files) {
    // all files are below one folder, which npm calls `package`
    const inner = path.split('/').slice(1).join('/');
    if (!parts.some((part) => inner === part || inner.startsWith(`${part}/`))) continue;
    await writeInside(room, inner, data).catch((error: unknown) => {
      throw isNameConflict(error) ? unusablePath(source, path, error) : error;
    });
  }
}

async function writeInside(room: string, path: string, data: Buffer): Promise<void> {
  await mkdir(dirname(join(room, path)), { recursive: true });
  await writeFile(join(room, path), data);
}

/** The name is too long, or that of both a file and a folder. */
function isNameConflict(error: unknown): boolean {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  return code === 'EEXIST' || code === 'EISDIR' || code === 'ENOTDIR' || code === 'ENAMETOOLONG';
}

function unusablePath(source: string, path: string, cause: unknown): MillraceError {
  const name = JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
  const fault = `the name ${name} in it is too long, or belongs to a file and to a folder`;
  return new MillraceError('bad_request', `${source} cannot be unpacked: ${fault}`, { cause });
}

async function countMigrations(room: string): Promise<number> {
  const migrations = await readMigrations(join(room, 'migrations', 'tenant')).catch((error: unknown) => {
    throw new EngineFault(error instanceof Error ? error.message : String(error));
  });
  if (migrations.length === 0) throw new EngineFault('it has no migrations');
  return migrations.length;
}

async function put(room: string, target: string, version: string): Promise<void> {
  await rename(room, target).catch((error: unknown) => {
    const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
    throw code === 'ENOTEMPTY' || code === 'EEXIST' ? alreadyThere(version) : error;
  });
}

/** Hides the engine by one rename before it deletes its files. */
async function discard(folder: string, target: string): Promise<void> {
  const rubbish = await mkdtemp(join(folder, removedPrefix));
  await rename(target, join(rubbish, 'engine'));
  await rm(rubbish, { recursive: true, force: true });
}

function alreadyThere(version: string): MillraceError {
  return new MillraceError('conflict', `engine ${version} is already installed; replace it with --replace`);
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Removes folders that killed commands have left. */
async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(addingPrefix) && !name.startsWith(removedPrefix)) continue;
    const found = await stat(join(folder, name)).catch(() => undefined);
    if (found !== undefined && Date.now() - found.mtimeMs > abandonedMs)
      await rm(join(folder, name), { recursive: true, force: true });
  }
}
