/**
 * A lock that ends with its holder: a symbolic link whose target is the holder's listening socket.
 *
 * A process takes the lock by creating the link, which is atomic. A link is dead if no process listens at its target. The
 * kernel answers that, so no pid is needed. Promises:
 *
 * 1. A socket listens before its link is created, so a live holder is never taken for a dead one.
 * 2. A dead link is replaced only by the process that holds a second lock, named after the dead target and taken by the same
 *    rule, and only after a second check. Targets are unique. So two processes that saw the same dead holder cannot both
 *    replace it, and a process that was suspended cannot remove a live successor.
 */
import { readlink, rm, symlink, unlink } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { MillraceError } from '../../errors.ts';
import { pause } from '../../kernel/service.ts';

/** Whether a process listens at a socket, and the line that it sent, if one came in time. */
export type Listener = { readonly state: 'dead' } | { readonly state: 'live'; readonly said: string | undefined };

/** The name of the live holder's socket, if the holder is another process. */
export interface Holder {
  readonly socket: string;
  readonly said: string | undefined;
}

const retryMs = 5;
const answerMs = 1_000;
const nobodyListens = new Set(['ECONNREFUSED', 'ENOENT']);
/** A busy or ending holder refuses connections with these codes; it counts as alive. */
const someoneListens = new Set(['EAGAIN', 'ECONNRESET', 'EPIPE']);

export function errno(error: unknown): string | undefined {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** Whether a system call has failed, in contrast to our own errors. */
export function isSystemError(error: unknown): boolean {
  return error instanceof Error && typeof Reflect.get(error, 'errno') === 'number';
}

const systemErrors: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOENT: 'a part of the path does not exist',
  ENOTDIR: 'a part of the path is a file',
  EEXIST: 'a part of the path is a file',
  ELOOP: 'its links lead in a circle',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  ENAMETOOLONG: 'the path is too long',
};

/** The message of a failed system call, or its code if there is no message. */
export function describeSystemError(error: unknown): string {
  const code = errno(error) ?? String(error);
  return systemErrors[code] ?? code;
}

/** Returns `instead` for this errno; rethrows every other error. */
export function unless<T>(code: string, instead: T): (error: unknown) => T {
  return (error) => {
    if (errno(error) === code) return instead;
    throw error;
  };
}

/** Takes the lock for `socket`, which must already listen, in the lock's folder. Otherwise returns the holder. */
export async function takeLock(lock: string, socket: string): Promise<Holder | undefined> {
  for (;;) {
    if (await makeLink(socket, lock)) return undefined;
    const target = await targetOf(lock);
    if (target === undefined) continue;
    const listener = await listenerAt(join(dirname(lock), target));
    if (listener.state === 'live') return { socket: target, said: listener.said };
    if (!(await replaceDead(lock, target, socket))) await pause(retryMs);
  }
}

export async function holderOf(lock: string): Promise<Holder | undefined> {
  const target = await targetOf(lock);
  if (target === undefined) return undefined;
  const listener = await listenerAt(join(dirname(lock), target));
  return listener.state === 'live' ? { socket: target, said: listener.said } : undefined;
}

/** Removes a dead link under the second lock. Returns false if another process holds that lock. */
async function replaceDead(lock: string, dead: string, socket: string): Promise<boolean> {
  const right = join(dirname(lock), `${basename(lock)}.${dead}`);
  if ((await takeLock(right, socket)) !== undefined) return false;
  try {
    if ((await targetOf(lock)) !== dead) return true;
    await rm(join(dirname(lock), dead), { force: true });
    // the name is free now; the first process that creates the link has the lock
    await unlink(lock);
    return true;
  } finally {
    await unlink(right);
  }
}

async function makeLink(target: string, path: string): Promise<boolean> {
  return await symlink(target, path).then(() => true, unless('EEXIST', false));
}

/** `up` creates only links under this name, so a file or folder was created by other software. */
async function targetOf(lock: string): Promise<string | undefined> {
  return await readlink(lock).catch((error: unknown) => {
    if (errno(error) === 'ENOENT') return undefined;
    if (errno(error) !== 'EINVAL') throw error;
    const detail = `${lock} is in the way: \`millrace up\` keeps a link of that name, not a file or folder. If no \`up\` runs on this home, remove it: rm -r ${lock}`;
    throw new MillraceError('bad_configuration', detail, { cause: error });
  });
}

/** Connects and waits for one line. A frozen holder accepts but sends nothing; it counts as alive. */
export async function listenerAt(path: string): Promise<Listener> {
  const socket = connect(path);
  try {
    return await new Promise<Listener>((resolve, reject) => {
      socket.on('error', (error) => {
        const code = errno(error) ?? '';
        if (nobodyListens.has(code)) resolve({ state: 'dead' });
        else if (someoneListens.has(code)) resolve({ state: 'live', said: undefined });
        else reject(error);
      });
      firstLine(socket, answerMs).then((said) => resolve({ state: 'live', said }), reject);
    });
  } finally {
    socket.destroy();
  }
}

/** The first line that arrives. Undefined if the other side closes, or `timeoutMs` after connecting. */
export async function firstLine(socket: Socket, timeoutMs: number): Promise<string | undefined> {
  return await new Promise((resolve) => {
    let text = '';
    socket.setEncoding('utf8');
    socket.setTimeout(timeoutMs, () => resolve(undefined));
    socket.on('data', (chunk) => {
      text += String(chunk);
      const end = text.indexOf('\n');
      if (end >= 0 || text.length > 64) resolve(end >= 0 ? text.slice(0, end) : undefined);
    });
    socket.on('end', () => resolve(undefined));
  });
}
