/**
 * A lock that dies with its holder: a symbolic link whose target is the holder's own listening socket.
 *
 * Making the link is the taking, and it is atomic. A link is dead when nobody listens at its target: the kernel, not a
 * pid, says so. Promises:
 *
 * 1. A socket listens before its link is made, so a live holder is never mistaken for a dead one.
 * 2. A dead link is replaced only by whoever holds the lock on replacing *it* (a link named after the dead target,
 *    taken by this same rule), and only after looking again. Targets are never used twice, so two that both saw the
 *    same dead holder cannot both replace it, and one that slept cannot remove a live successor.
 */
import { readlink, rm, symlink, unlink } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { MillraceError } from '../../errors.ts';
import { pause } from '../../kernel/service.ts';

/** Who listens at a socket: nobody, or someone with the line it said, if it said one in time. */
export type Listener = { readonly state: 'dead' } | { readonly state: 'live'; readonly said: string | undefined };

/** The name of the live holder's socket, when it is not us. */
export interface Holder {
  readonly socket: string;
  readonly said: string | undefined;
}

const retryMs = 5;
const answerMs = 1_000;
const nobodyListens = new Set(['ECONNREFUSED', 'ENOENT']);
/** Too busy to accept, or letting go at this very moment: someone is there. */
const someoneListens = new Set(['EAGAIN', 'ECONNRESET', 'EPIPE']);

export function errno(error: unknown): string | undefined {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** Whether a system call failed, rather than a rule of ours. */
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

/** A failed system call in words; its code where there are none. */
export function describeSystemError(error: unknown): string {
  const code = errno(error) ?? String(error);
  return systemErrors[code] ?? code;
}

/** Turns the errno named into `instead`; every other failure is thrown on. */
export function unless<T>(code: string, instead: T): (error: unknown) => T {
  return (error) => {
    if (errno(error) === code) return instead;
    throw error;
  };
}

/** Takes the lock for `socket`, a name in the lock's folder that listens already; or says who holds it. */
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

/** Clears a dead link away under the right to do so; false when someone else is at it. */
async function replaceDead(lock: string, dead: string, socket: string): Promise<boolean> {
  const right = join(dirname(lock), `${basename(lock)}.${dead}`);
  if ((await takeLock(right, socket)) !== undefined) return false;
  try {
    if ((await targetOf(lock)) !== dead) return true;
    await rm(join(dirname(lock), dead), { force: true });
    // the name is free from here on; whoever links first has it
    await unlink(lock);
    return true;
  } finally {
    await unlink(right);
  }
}

async function makeLink(target: string, path: string): Promise<boolean> {
  return await symlink(target, path).then(() => true, unless('EEXIST', false));
}

/** `up` makes nothing but links under this name: a file or folder that is there was put by somebody else. */
async function targetOf(lock: string): Promise<string | undefined> {
  return await readlink(lock).catch((error: unknown) => {
    if (errno(error) === 'ENOENT') return undefined;
    if (errno(error) !== 'EINVAL') throw error;
    const detail = `${lock} is in the way: \`millrace up\` keeps a link of that name, not a file or folder. If no \`up\` runs on this home, remove it: rm -r ${lock}`;
    throw new MillraceError('bad_configuration', detail, { cause: error });
  });
}

/** Connects and waits for one line. A frozen holder accepts without a word: it is alive all the same. */
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

/** The first line that comes, or undefined when the other side closes or `timeoutMs` passes after connecting. */
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
