/**
 * `$MILLRACE_HOME`: the folder that holds everything of one installation, and the rule that one `up` runs per home.
 *
 * Promises:
 * 1. The folder belongs to the user that runs Millrace. No other user may list it or write to it.
 * 2. The claim on it ends with its process and needs no cleaning up.
 * 3. If several processes claim it at once, exactly one succeeds. The others get its pid.
 */
import { createHash, randomBytes } from 'node:crypto';
import { access, chmod, constants, lstat, mkdir, readdir, realpath, rm, stat, unlink } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { MillraceError } from '../../errors.ts';
import { within } from '../../kernel/service.ts';
import { describeSystemError, firstLine, type Holder, holderOf, isSystemError, takeLock, unless } from './home-lock.ts';

/** Maximum length of a socket's path on all supported systems, without the terminating zero. */
const longestSocketPath = 103;

const lockName = 'up.lock';
/** `up-<pid>-<8 hex>.sock`, with the largest pid a system gives. */
const longestSocketName = 'up-4194304-00000000.sock'.length;

export interface HomeClaim {
  /** Releases the home. May be called twice. */
  release(): Promise<void>;
}

/** Creates the home if it is missing, with mode 0700. Returns its real path, so that one home has one name. */
export async function makeHome(path: string): Promise<string> {
  const home = resolve(path);
  try {
    // parent folders are not 0700, because the server's user must pass through them
    await mkdir(dirname(home), { recursive: true });
    await mkdir(home, { mode: 0o700 }).catch(unless('EEXIST', undefined));
    const real = await realpath(home);
    await checkHome(real);
    return real;
  } catch (error) {
    throw isSystemError(error) ? unusableHome(home, error) : error;
  }
}

function unusableHome(home: string, cause: unknown): MillraceError {
  const detail = `the home ${home} cannot be used (${describeSystemError(cause)}): make it writable for this user, or name another folder with --home or MILLRACE_HOME`;
  return new MillraceError('bad_configuration', detail, { cause });
}

/**
 * The owner of the home, and every user who may write to it, can plant keys. Only our own user may, also when that is root.
 * Other users may pass through (0710, 0711): the embedded server has a user of its own.
 */
export async function checkHome(home: string): Promise<void> {
  const found = await stat(home);
  if (!found.isDirectory()) {
    const detail = `the home ${home} is not a folder: name another with --home or MILLRACE_HOME`;
    throw new MillraceError('bad_configuration', detail);
  }
  const uid = process.getuid?.() ?? found.uid;
  if (found.uid !== uid) {
    const detail = `the home ${home} belongs to user ${found.uid}, and Millrace runs as user ${uid}: run it as user ${found.uid}, name a folder of your own with --home or MILLRACE_HOME, or make this one yours: chown ${uid} ${home}`;
    throw new MillraceError('bad_configuration', detail);
  }
  const mode = found.mode & 0o777;
  if ((mode & 0o066) === 0) return;
  // such as a new volume: it is empty, so no other user has put anything into it
  if ((mode & 0o022) === 0 && (await readdir(home)).length === 0) return chmod(home, 0o700);
  const may = (mode & 0o022) === 0 ? 'list' : 'write to';
  const detail = `other users may ${may} the home ${home} (mode ${mode.toString(8)}). Look whether its files are yours, then close it: chmod 700 ${home}`;
  throw new MillraceError('bad_configuration', detail);
}

/** A name for files that belong to this home but are stored elsewhere. `home` is a real path. */
export function homeHash(home: string): string {
  return createHash('sha256').update(home).digest('hex').slice(0, 16);
}

/**
 * A folder for sockets whose path in the home would be too long. It is always below `/tmp`, regardless of TMPDIR, so that
 * `down` in another shell finds the same one.
 */
export function tempFolder(home: string, purpose: string): string {
  return `/tmp/millrace-${homeHash(home)}-${purpose}`;
}

/** Creates a 0700 folder in a place where every user may write. Refuses a folder that another user has created. */
export async function makePrivate(folder: string, owners: readonly number[]): Promise<void> {
  await mkdir(folder, { mode: 0o700 }).catch(unless('EEXIST', undefined));
  const found = await lstat(folder);
  const safe = found.isDirectory() && owners.includes(found.uid) && (found.mode & 0o077) === 0;
  if (!safe)
    throw new MillraceError('bad_configuration', `${folder} exists and is not a private folder of ours: remove it`);
}

export function fitsSocket(folder: string, nameLength: number): boolean {
  return Buffer.byteLength(folder) + 1 + nameLength <= longestSocketPath;
}

function lockFolder(home: string): string {
  return fitsSocket(home, longestSocketName) ? home : tempFolder(home, 'up');
}

/**
 * Claims the home for this process, or throws `already_running` with the holder's pid. `onStop` is called when another
 * process asks the holder to end (`stopOwner`).
 */
export async function claimHome(path: string, onStop: () => void): Promise<HomeClaim> {
  const home = await makeHome(path);
  await access(home, constants.W_OK).catch((error: unknown) => {
    throw unusableHome(home, error);
  });
  const folder = lockFolder(home);
  if (folder !== home) await makePrivate(folder, await ownersOf(home));
  const socket = `up-${process.pid}-${randomBytes(4).toString('hex')}.sock`;
  const listener = await listen(join(folder, socket), onStop);
  try {
    const holder = await takeLock(join(folder, lockName), socket);
    if (holder !== undefined) throw alreadyRunning(home, holder);
  } catch (error) {
    await listener.close();
    throw error;
  }
  let held = true;
  return {
    async release() {
      if (!held) return;
      held = false;
      await unlink(join(folder, lockName));
      await listener.close();
    },
  };
}

/** The users that may have created a folder for this home: ours, and the owner of the home. */
async function ownersOf(home: string): Promise<number[]> {
  return [process.getuid?.() ?? -1, (await lstat(home)).uid];
}

function alreadyRunning(home: string, holder: Holder): MillraceError {
  return new MillraceError('already_running', `millrace already runs on ${home}, as process ${pidOf(holder)}`);
}

/** The pid that the holder sent, or the pid in its socket's name if it is frozen and sends nothing. */
function pidOf(holder: Holder): number {
  return Number(holder.said ?? holder.socket.split('-')[1]);
}

/** The pid of the `up` that runs on this home, if there is one. */
export async function askOwner(path: string): Promise<number | undefined> {
  const found = await findHolder(path);
  return found === undefined ? undefined : pidOf(found.holder);
}

async function findHolder(path: string): Promise<{ holder: Holder; folder: string } | undefined> {
  try {
    const home = await realpath(path).catch(unless('ENOENT', undefined));
    if (home === undefined) return undefined;
    const folder = lockFolder(home);
    const holder = await holderOf(join(folder, lockName));
    return holder && { holder, folder };
  } catch (error) {
    throw isSystemError(error) ? unusableHome(path, error) : error;
  }
}

/** Asks the home's `up` to end, and waits for at most `patienceMs` until it has. Returns its pid; undefined if none runs. */
export async function stopOwner(path: string, patienceMs: number): Promise<number | undefined> {
  const found = await findHolder(path);
  if (found === undefined) return undefined;
  const pid = pidOf(found.holder);
  const socket = connect(join(found.folder, found.holder.socket));
  socket.write('stop\n');
  const hasEnded = await within(
    patienceMs,
    closed(socket).then(() => true),
  );
  socket.destroy();
  if (hasEnded !== true) throw stillRunning(pid, patienceMs);
  return pid;
}

function stillRunning(pid: number, patienceMs: number): MillraceError {
  const detail = `Millrace (process ${pid}) was asked to stop, and still runs after ${patienceMs / 1000} s. It may wait for running tasks (MILLRACE_DRAIN): then try again. If it is frozen, wake it with \`kill -CONT ${pid}\`, or end it with \`kill -KILL ${pid}\` and run \`millrace down\` again`;
  return new MillraceError('already_running', detail);
}

/** Returns when the connection has ended for any reason: a holder that has died has also released the home. */
async function closed(socket: Socket): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.on('error', () => {});
    socket.once('close', () => resolve());
    socket.resume();
  });
}

/** Sends our pid to each connection, accepts `stop`, and keeps the connection until the home is released. */
async function listen(path: string, onStop: () => void): Promise<{ close(): Promise<void> }> {
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => open.delete(socket));
    socket.write(`${process.pid}\n`);
    void firstLine(socket, 0).then((line) => {
      if (line === 'stop') onStop();
    });
    socket.unref();
  });
  await bind(server, path);
  server.unref();
  return {
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(path, { force: true });
    },
  };
}

async function bind(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      server.on('error', () => {});
      resolve();
    });
  });
  await chmod(path, 0o600);
}
