/**
 * Where the parts of an embedded server live, and for whom: user, programs, data folder, socket folder, log.
 *
 * The data folder is `<home>/postgres`. As root, whichever of home and programs the server's user cannot reach (below
 * `/root`, say) lives in `/var/lib/millrace/<hash of home>` instead; `<home>/postgres` is then a link to it, and a note
 * says so. Promises: data that exist are never silently passed over for an empty cluster; a home that was deleted and
 * made anew starts empty, its old data set aside.
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

export interface Place {
  /** A real path. */
  readonly home: string;
  readonly user: ServerUser;
  readonly binaries: Binaries;
  /** The cluster's own folder; it may not exist yet. */
  readonly data: string;
  readonly sockets: string;
  readonly log: string;
  /** What an operator should be told about these choices. */
  readonly notes: readonly string[];
}

export interface PlaceOptions {
  readonly home: string;
  /** The user that root lends the server. */
  readonly user?: string;
  /** What to use instead of a part of the home that the user cannot reach. */
  readonly elsewhere?: string;
}

interface Lent {
  readonly user: ServerUser;
  readonly notes: readonly string[];
}

interface Settled extends Lent {
  readonly data: string;
}

/** The folders in which this home's cluster may be found, the likelier one first. */
export function dataFolders(home: string, root = '/var/lib/millrace'): string[] {
  return [join(home, 'postgres'), join(root, homeHash(home), 'postgres')];
}

export async function findPlace(options: PlaceOptions): Promise<Place> {
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

async function settleAsRoot(options: PlaceOptions, here: string, there: string): Promise<Settled> {
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

/** Whether `here` says that the data are `there`. A link to some other place means a home that was moved or copied. */
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

/** A cluster stays its owner's; a new one is for the user we lend. */
async function userFor(data: string, options: PlaceOptions): Promise<Lent> {
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

/** Lets the user pass through a private home of root's (pass, not look: 0710), and tries whether it now can. */
async function openHome(home: string, user: ServerUser): Promise<boolean> {
  if (!(await canEnter(user, dirname(home)))) return false;
  const { uid, mode } = await lstat(home);
  if (uid === 0 && (mode & 0o077) === 0) {
    await chown(home, 0, user.gid);
    await chmod(home, 0o710);
  }
  return await canEnter(user, home);
}

/** Data of a home of this name that is gone: kept, but not taken for this one's. */
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

/** In the data folder, which PostgreSQL keeps 0700; where that path is too long, in a folder just as private. */
async function socketFolder(home: string, { user, data }: Settled): Promise<string> {
  // PostgreSQL puts a lock file beside it, but only the socket's own name must fit
  if (fitsSocket(data, socketName.length)) return data;
  const folder = tempFolder(home, 'postgres');
  await makePrivate(folder, isRoot() ? [0, user.uid] : [user.uid]);
  if (isRoot()) await chown(folder, user.uid, user.gid);
  return folder;
}
