/**
 * Chooses the user, programs, data folder, socket folder and log of an embedded server.
 *
 * The data folder is `<home>/postgres`. If Millrace runs as root and the server's user cannot reach the home or the programs
 * (below `/root`, for example), these are in `/var/lib/millrace/<hash of home>` instead. `<home>/postgres` is then a link to it,
 * and a notice is logged.
 *
 * Promises: existing data are never silently replaced by an empty cluster. A home that was deleted and created again starts
 * empty, and its old data are kept under another name.
 */
import { chmod, chown, lstat, mkdir, readlink, rename, symlink, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { MillraceError } from '../../errors.ts';
import { type Binaries, canRun, copyBinaries, exists, findBinaries, makeLinks } from './binaries.ts';
import { canEnter, isRoot, lendUser, lookUp, ourselves, type ServerUser } from './user.ts';
import { fitsSocket, homeHash, makeHome, makePrivate, tempFolder } from './home.ts';
import { unless } from './home-lock.ts';

export const port = 5432;
export const socketName = `.s.PGSQL.${port}`;

export interface ServerLayout {
  /** A real path. */
  readonly home: string;
  readonly user: ServerUser;
  readonly binaries: Binaries;
  /** The folder of the cluster. It may not exist yet. */
  readonly data: string;
  readonly sockets: string;
  readonly log: string;
  /** Notices for the operator about these choices. */
  readonly notes: readonly string[];
}

export interface LayoutOptions {
  readonly home: string;
  /** The user of the server if we run as root. */
  readonly user?: string;
  /** The folder for parts of the home that this user cannot reach. */
  readonly elsewhere?: string;
}

interface Lent {
  readonly user: ServerUser;
  readonly notes: readonly string[];
}

interface Settled extends Lent {
  readonly data: string;
}

/** The folders in which this home's cluster may be, the likelier one first. */
export function dataFolders(home: string, root = '/var/lib/millrace'): string[] {
  return [join(home, 'postgres'), join(root, homeHash(home), 'postgres')];
}

export async function findLayout(options: LayoutOptions): Promise<ServerLayout> {
  const home = await makeHome(options.home);
  const [here = '', there = ''] = dataFolders(home, options.elsewhere);
  const settled = isRoot() ? await settleAsRoot(options, here, there) : await settleAsOurselves(here);
  const programs = await reachableBinaries(settled.user, isRoot() ? dirname(there) : home);
  const sockets = await socketFolder(home, settled);
  const notes = [...settled.notes, ...programs.notes];
  return { ...settled, home, binaries: programs.binaries, sockets, log: join(home, 'postgres.log'), notes };
}

async function settleAsOurselves(here: string): Promise<Settled> {
  const found = await lstat(here).catch(unless('ENOENT', undefined));
  const user = ourselves();
  if (found !== undefined && (found.isSymbolicLink() || found.uid !== user.uid)) {
    const owner = found.isSymbolicLink() ? 'another user' : `user ${found.uid}`;
    throw new MillraceError(
      'embedded_postgres',
      `The cluster ${here} belongs to ${owner}: run as that user, or as root`,
    );
  }
  return { user, data: here, notes: [] };
}

async function settleAsRoot(options: LayoutOptions, here: string, there: string): Promise<Settled> {
  if (await linkAt(here, there)) return await elsewhere(await userFor(there, options), here, there);
  const lent = await userFor(here, options);
  if (await openHome(dirname(here), lent.user)) return { ...lent, data: here };
  if (await exists(here)) {
    throw new MillraceError(
      'embedded_postgres',
      `The user ${lent.user.name} cannot reach its cluster ${here}: let it pass`,
    );
  }
  const aside = await setAside(there);
  await symlink(there, here);
  return await elsewhere({ ...lent, notes: [...lent.notes, ...aside] }, here, there);
}

async function elsewhere(lent: Lent, here: string, there: string): Promise<Settled> {
  await makeElsewhere(dirname(there), lent.user);
  const why = `The user ${lent.user.name} cannot reach ${dirname(here)}: PostgreSQL's data are in ${there}`;
  return { user: lent.user, data: there, notes: [...lent.notes, why] };
}

/** Whether `here` is a link to `there`. A link to another place means that the home was moved or copied. */
async function linkAt(here: string, there: string): Promise<boolean> {
  const target = await readlink(here).catch(() => undefined);
  if (target === undefined || target === there) return target === there;
  if (await exists(target)) {
    const detail = `${here} points to ${target}, which belongs to another home. If you moved the home, move that folder to ${there} and the link with it; if you copied it, remove the link`;
    throw new MillraceError('embedded_postgres', detail);
  }
  await unlink(here);
  return false;
}

/** An existing cluster keeps its owner. A new one belongs to the user of the server. */
async function userFor(data: string, options: LayoutOptions): Promise<Lent> {
  const found = await lstat(data).catch(unless('ENOENT', undefined));
  if (found === undefined || found.uid === 0) return await lendUser(options.user ?? 'millrace');
  const user = await lookUp(String(found.uid));
  if (user === undefined) {
    throw new MillraceError(
      'embedded_postgres',
      `The cluster ${data} belongs to user ${found.uid}, who does not exist here`,
    );
  }
  return { user, notes: [] };
}

/** Lets the user pass through a private home of root without listing it (0710). Returns whether it can. */
async function openHome(home: string, user: ServerUser): Promise<boolean> {
  if (!(await canEnter(user, dirname(home)))) return false;
  const { uid, mode } = await lstat(home);
  if (uid === 0 && (mode & 0o077) === 0) {
    await chown(home, 0, user.gid);
    await chmod(home, 0o710);
  }
  return await canEnter(user, home);
}

/** Keeps the data of a deleted home of the same name, but does not use them for this one. */
async function setAside(there: string): Promise<string[]> {
  if (!(await exists(there))) return [];
  const aside = `${there}.old-${new Date().toISOString().replaceAll(':', '')}`;
  await rename(there, aside);
  return [`Data of an earlier home of this name were set aside in ${aside}`];
}

async function makeElsewhere(folder: string, user: ServerUser): Promise<void> {
  await mkdir(dirname(folder), { recursive: true });
  await chmod(dirname(folder), 0o711);
  await mkdir(folder, { mode: 0o700 }).catch(unless('EEXIST', undefined));
  await chown(folder, 0, user.gid);
  await chmod(folder, 0o710);
}

async function reachableBinaries(user: ServerUser, spare: string): Promise<{ binaries: Binaries; notes: string[] }> {
  const binaries = await findBinaries();
  const linked = await makeLinks(binaries);
  if (linked && (!isRoot() || (await canRun(user, binaries)))) return { binaries, notes: [] };
  if (isRoot()) await makeElsewhere(spare, user);
  const copy = await copyBinaries(binaries, spare);
  const why = linked ? `The user ${user.name} cannot reach` : 'Library links cannot be made in';
  return { binaries: copy, notes: [`${why} ${binaries.folder}: PostgreSQL's programs are in ${copy.folder}`] };
}

/** The data folder, which PostgreSQL keeps 0700. If that path is too long, another 0700 folder. */
async function socketFolder(home: string, { user, data }: Settled): Promise<string> {
  // PostgreSQL creates a lock file beside it, but only the path of the socket has a maximum length
  if (fitsSocket(data, socketName.length)) return data;
  const folder = tempFolder(home, 'postgres');
  await makePrivate(folder, isRoot() ? [0, user.uid] : [user.uid]);
  if (isRoot()) await chown(folder, user.uid, user.gid);
  return folder;
}
