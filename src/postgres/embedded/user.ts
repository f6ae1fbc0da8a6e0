/**
 * The user that runs the embedded server. PostgreSQL refuses to run as root, so root starts it as an unprivileged user, which is
 * created if it is missing. Any other user runs it as itself.
 *
 * Promises: commands get nothing of our environment, so a PGDATA or LD_PRELOAD of the shell does not affect them. Access is
 * checked by trying as that user, not by reading mode bits.
 */
import { spawn } from 'node:child_process';
import { userInfo } from 'node:os';
import { MillraceError } from '../../errors.ts';
import { persist } from '../../kernel/backoff.ts';

export interface ServerUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

export interface Ran {
  readonly ok: boolean;
  readonly output: string;
}

export const cleanEnvironment = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' } as const;

export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** The options of `spawn` for this user; empty for our own. Node drops root's other groups. */
export function identity(user: ServerUser): { uid?: number; gid?: number } {
  return isRoot() ? { uid: user.uid, gid: user.gid } : {};
}

export function ourselves(): ServerUser {
  const { username: name, uid, gid } = userInfo();
  return { name, uid, gid };
}

/** Runs a command as `user`, or as our own user, and returns the output of both streams. */
export async function run(command: string, args: readonly string[], user?: ServerUser): Promise<Ran> {
  return await new Promise((resolve) => {
    const as = user === undefined ? {} : identity(user);
    const child = spawn(command, args, { ...as, cwd: '/', env: cleanEnvironment, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const hear = (chunk: Buffer): void => {
      output += chunk.toString();
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.once('error', (error) => resolve({ ok: false, output: error.message }));
    child.once('close', (code, signal) => {
      resolve({ ok: code === 0, output: signal === null ? output.trim() : `${output}\nended by ${signal}`.trim() });
    });
  });
}

/** A user by name or by number. */
export async function lookUp(who: string): Promise<ServerUser | undefined> {
  const asked = await Promise.all(['-un', '-u', '-g'].map((flag) => run('id', [flag, who])));
  const [name, uid, gid] = asked.map((answer) => (answer.ok ? answer.output : undefined));
  if (name === undefined || uid === undefined || gid === undefined) return undefined;
  // macOS writes nobody's number -2 as 4294967294, which spawn refuses
  return { name, uid: Number(uid) | 0, gid: Number(gid) | 0 };
}

/** The user for the server if we run as root, and a notice if it is not the preferred one. */
export async function lendUser(wished: string): Promise<{ user: ServerUser; notes: string[] }> {
  const found = (await lookUp(wished)) ?? (await makeUser(wished));
  if (found !== undefined) return { user: found, notes: [] };
  // other services of this machine may share it; the data stay in separate 0700 folders
  const nobody = await lookUp('nobody');
  if (nobody === undefined || nobody.uid === 0) {
    throw new MillraceError(
      'embedded_postgres',
      `PostgreSQL does not run as root: make the user ${wished}, or run as another`,
    );
  }
  return { user: nobody, notes: [`The user ${wished} could not be made: PostgreSQL runs as nobody`] };
}

const passwordFileBusy = { firstMs: 20, capMs: 200, jitter: 0.5 };

/** Retries for a while, because another process may create the user at the same time or lock the password file. */
async function makeUser(name: string): Promise<ServerUser | undefined> {
  const flags = [
    '--system',
    '--user-group',
    '--no-create-home',
    '--home-dir',
    '/nonexistent',
    '--shell',
    '/usr/sbin/nologin',
  ];
  const attempt = async (): Promise<ServerUser> => {
    await run('useradd', [...flags, name]);
    const user = await lookUp(name);
    if (user === undefined) throw new Error(`useradd did not make ${name}`);
    return user;
  };
  const giveUp = triesLeft(5);
  return await persist(attempt, { backoff: passwordFileBusy, giveUp }).catch(() => undefined);
}

function triesLeft(count: number): () => boolean {
  let left = count;
  return () => --left <= 0;
}

/** Whether this user can enter the folder. */
export async function canEnter(user: ServerUser, folder: string): Promise<boolean> {
  return (await run('/bin/sh', ['-c', 'test -x "$0"', folder], user)).ok;
}
