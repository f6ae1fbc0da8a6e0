/**
 * Decides which users tasks run as, by trying, and describes the result in one sentence for the start.
 *
 * | Millrace is started by | MILLRACE_TASK_USER | tasks run as |
 * |---|---|---|
 * | root | unset, or a range `A-B` | a user of their own each, a number without an account |
 * | root | an account | that account, all of them |
 * | root | `root` | root |
 * | root without the right to change the user | not an account | root, and the start warns |
 * | another user | unset | the same user |
 */
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, lchownSync, lstatSync, mkdirSync, readFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { MillraceError } from '../../errors.ts';
import { lookUp, run } from '../../postgres/embedded/user.ts';

export interface UserRange {
  readonly first: number;
  readonly last: number;
}

interface Separation {
  readonly kind: 'own' | 'account' | 'same';
  /** Shown to the user at the start. */
  readonly about: string;
}

export interface OwnSeparation extends Separation {
  readonly kind: 'own';
  readonly range: UserRange;
  /** The folder of root that contains the folder of each user. */
  readonly folder: string;
  /** Whether tasks can begin in the working directory of this process. */
  readonly reachesCwd: boolean;
  /** The command prefix that prevents a program from giving the task another user; empty: the tool is missing. */
  readonly confine: readonly string[];
}

export interface AccountSeparation extends Separation {
  readonly kind: 'account';
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

export type TaskSeparation = OwnSeparation | AccountSeparation | (Separation & { readonly kind: 'same' });

/**
 * Numbers that systemd, login.defs and subuid do not use. The second range is for containers that map only 65,536 users.
 */
const usualRanges: readonly UserRange[] = [
  { first: 70_000, last: 99_999 },
  { first: 60_578, last: 61_183 },
];

const rangeText = /^(\d{1,10})-(\d{1,10})$/;
const largestUid = 2 ** 31 - 2;

const folders = ['/var/lib/millrace/tasks', join(tmpdir(), 'millrace-tasks')];

export async function findSeparation(wish: string | undefined): Promise<TaskSeparation> {
  if (process.getuid?.() !== 0) return asOurselves(wish);
  const range = wish === undefined ? undefined : rangeOf(wish);
  if (wish !== undefined && range === undefined) return asAccount(wish);
  const found = await separate(range === undefined ? usualRanges : [range]);
  if (wish !== undefined && found.kind === 'same') throw faulty(wish, found.about);
  return found;
}

function asOurselves(wish: string | undefined): TaskSeparation {
  const { username } = userInfo();
  if (wish !== undefined && wish !== username) throw faulty(wish, 'only root can run tasks as another user');
  return same(
    `Tasks run as ${username}, like Millrace itself: they can read its files, its keys and each other's secrets. ` +
      'To separate them, start Millrace as root, or run workers on machines of their own',
  );
}

function same(about: string): TaskSeparation {
  return { kind: 'same', about };
}

function faulty(wish: string, why: string): MillraceError {
  return new MillraceError('bad_configuration', `MILLRACE_TASK_USER=${wish}: ${why}`);
}

async function asAccount(name: string): Promise<TaskSeparation> {
  const user = await lookUp(name);
  if (user === undefined)
    throw faulty(name, 'there is no such account; name one, or a range of numbers such as 70000-99999');
  if (user.uid === 0) return same('Tasks run as root, as MILLRACE_TASK_USER says: they can read and change everything');
  if (!(await canBecome(user.uid, user.gid))) throw faulty(name, 'this process may not run programs as another user');
  const entry = await run('getent', ['passwd', user.name]);
  const home = (entry.ok && entry.output.split(':')[5]) || '/';
  const about = `Tasks run as ${user.name}, all of them: they cannot read Millrace's files, but each other's secrets`;
  return { kind: 'account', about, name: user.name, uid: user.uid, gid: user.gid, home };
}

function rangeOf(wish: string): UserRange | undefined {
  const match = rangeText.exec(wish);
  if (match === null) return undefined;
  const range = { first: Number(match[1]), last: Number(match[2]) };
  if (range.first < 1 || range.last > largestUid || range.last < range.first)
    throw faulty(wish, `the range must lie between 1 and ${largestUid}, the smaller number first`);
  const taken = accountIn(range);
  if (taken !== undefined)
    throw faulty(wish, `the account ${taken} is in this range, and its processes would be killed`);
  return range;
}

/** All processes of a task's user are killed after the task, so no account may be in the range. */
function accountIn({ first, last }: UserRange): string | undefined {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  const entries = lines.map((line) => line.split(':'));
  return entries.find(([, , uid]) => Number(uid) >= first && Number(uid) <= last)?.[0];
}

/** The numbers of this range that are accounts, from any source: a directory service may use large numbers. */
export async function accountsIn({ first, last }: UserRange): Promise<ReadonlySet<number>> {
  const numbers = Array.from({ length: last - first + 1 }, (_, i) => String(first + i));
  const { output } = await run('getent', ['passwd', ...numbers]);
  return new Set(output.split('\n').map((line) => Number(line.split(':')[2] ?? -1)));
}

async function separate(ranges: readonly UserRange[]): Promise<TaskSeparation> {
  for (const range of ranges.filter((each) => accountIn(each) === undefined)) {
    for (const folder of folders) {
      if (!(await canSeparate(range, folder))) continue;
      const reachesCwd = await succeeds(range.first, 'test -r . && test -x .');
      const confine = await findConfinement(range.first);
      const about =
        confine.length > 0
          ? 'Each task runs as a user of its own, who cannot read the files and keys of Millrace or other tasks'
          : 'Each task runs as a user of its own, who cannot read the files and keys of Millrace; install setpriv (util-linux) to keep tasks from each other, too';
      return { kind: 'own', about, range, folder, reachesCwd, confine };
    }
  }
  return same(
    'Tasks run as root and can read and change everything: this process cannot run them as other users. ' +
      `It needs the rights to (CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_CHOWN), and a folder ${folders.join(' or ')}`,
  );
}

/**
 * A setuid program that one task left in /tmp would give its user to a later task, and that user may belong to another task by
 * then. Under no_new_privs the setuid bit has no effect.
 */
const noNewPrivileges = ['/usr/bin/setpriv', '--no-new-privs', '--'];

/**
 * The maximum number of processes and threads of a task. Otherwise a fork bomb would use up all process numbers of the machine,
 * often 32,768. systemd allows a service about as many (15 % of them).
 */
const maxProcesses = 4_096;
const processLimit = ['/usr/bin/prlimit', `--nproc=${maxProcesses}:${maxProcesses}`, '--'];

/** The strongest confinement whose programs are installed. */
async function findConfinement(uid: number): Promise<readonly string[]> {
  for (const confine of [[...processLimit, ...noNewPrivileges], noNewPrivileges]) {
    if (await succeeds(uid, `${confine.join(' ')} true`)) return confine;
  }
  return [];
}

async function canSeparate({ first, last }: UserRange, folder: string): Promise<boolean> {
  try {
    makeFolder(folder);
    const own = makeUserFolder(folder, first);
    return (
      (await canBecome(first, first)) && (await canBecome(last, last)) && (await succeeds(first, 'test -w "$0"', own))
    );
  } catch {
    return false;
  }
}

/** Other users may pass through the folder, but not list it. A folder of another user is rejected. */
function makeFolder(folder: string): void {
  const made = mkdirSync(folder, { recursive: true });
  // independent of the umask
  if (made !== undefined) for (let at = folder; at.length >= made.length; at = dirname(at)) chmodSync(at, 0o711);
  const { uid, mode } = lstatSync(folder);
  if (uid !== 0 || (mode & 0o022) !== 0) throw new Error(`${folder} belongs to another user`);
}

/** The private folder of a task's user: its HOME and TMPDIR. */
export function makeUserFolder(parent: string, uid: number): string {
  const folder = join(parent, String(uid));
  if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
  lchownSync(folder, uid, uid);
  return folder;
}

/** Whether a program can be run as this user, and killed again. */
async function canBecome(uid: number, gid: number): Promise<boolean> {
  const child = spawn('/bin/sh', ['-c', 'read -r line'], { uid, gid, cwd: '/', stdio: ['pipe', 'ignore', 'ignore'] });
  const ended = new Promise<boolean>((resolve) => {
    child.once('error', () => resolve(false));
    child.once('exit', (_, signal) => resolve(signal === 'SIGKILL'));
  });
  child.stdin.on('error', () => {});
  try {
    if (child.pid !== undefined) process.kill(child.pid, 'SIGKILL');
  } catch {
    child.stdin.end();
  }
  return await ended;
}

/** Whether a shell script succeeds as this user, in the working directory of this process. */
function succeeds(uid: number, script: string, argument = ''): Promise<boolean> {
  const how = { uid, gid: uid, env: { PATH: '/usr/bin:/bin' }, stdio: 'ignore' } as const;
  const child = spawn('/bin/sh', ['-c', script, argument], how);
  return new Promise((resolve) => {
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}
