/**
 * The users that tasks run as. Each task takes a user and gives it back afterwards.
 *
 * If each task has a user of its own (`task-separation.ts`):
 *
 * 1. No two tasks of this machine have the same user at the same time: numbers are taken in blocks, and a block is locked
 *    for the life of the worker.
 * 2. Before a user is given to another task, all processes of the previous task are killed, whatever it did to hide them, its shared
 *    memory is removed and its folder is emptied. A process of that user does all this: `kill -1` misses no process that forks
 *    meanwhile, and root never walks through a folder that tasks can change. Root checks the result if that process may have been
 *    disturbed.
 * 3. A user that cannot be cleaned up is not used again.
 */
import { spawn } from 'node:child_process';
import { chmodSync, readFileSync } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { type Log, silent } from '../../kernel/log.ts';
import { MillraceError } from '../../errors.ts';
import { hasMemory, removeMemory } from './left-memory.ts';
import { processesOf, usersWithProcesses } from '../process/process-table.ts';
import {
  accountsIn,
  type AccountSeparation,
  findSeparation,
  makeUserFolder,
  type OwnSeparation,
  type TaskSeparation,
} from './task-separation.ts';
import { signalOne } from '../process/task-processes.ts';
import { UserBlocks } from './user-blocks.ts';

export interface TaskUser {
  readonly uid: number;
  readonly gid: number;
  /** Overrides inherited variables, and is overridden by those that the task declares. */
  readonly env: Readonly<Record<string, string>>;
  /** The prefix of its command. */
  readonly confine: readonly string[];
  /** The working directory of a task that names no folder; undefined: that of the worker. */
  readonly cwd: string | undefined;
}

export interface TaskUsersOptions {
  /** The setting MILLRACE_TASK_USER. */
  readonly wish: string | undefined;
  readonly log?: Log | undefined;
}

/** The user name in the environment of tasks, because their users have no account. */
const userName = 'millrace-task';

export class TaskUsers {
  readonly #options: TaskUsersOptions;
  #separation: Promise<TaskSeparation> | undefined;
  #own: OwnUsers | undefined;

  constructor(options: TaskUsersOptions) {
    this.#options = options;
  }

  /** The users that tasks run as; determined once. */
  separation(): Promise<TaskSeparation> {
    this.#separation ??= findSeparation(this.#options.wish);
    return this.#separation;
  }

  /** Undefined: tasks run as the worker's own user. */
  async take(): Promise<TaskUser | undefined> {
    const separation = await this.separation();
    if (separation.kind === 'same') return undefined;
    if (separation.kind === 'account') return accountUser(separation);
    this.#own ??= new OwnUsers(separation, this.#options.log ?? silent);
    return await this.#own.take();
  }

  /** Call it after the task: its remaining processes are killed and its files removed. */
  give(user: TaskUser | undefined): void {
    if (user !== undefined) this.#own?.give(user.uid);
  }

  /** Releases all users, once the last one is cleaned up. */
  async stop(): Promise<void> {
    const own = this.#own;
    this.#own = undefined;
    await own?.stop();
  }
}

function accountUser({ uid, gid, name, home }: AccountSeparation): TaskUser {
  return { uid, gid, env: { HOME: home, USER: name, LOGNAME: name }, confine: [], cwd: undefined };
}

class OwnUsers {
  readonly #separation: OwnSeparation;
  readonly #log: Log;
  readonly #blocks: UserBlocks;
  /** Clean users; the one that was used longest ago comes first. */
  readonly #free: number[] = [];
  /** Users of a block that was just taken: processes or files of a dead worker may be left. */
  readonly #unknown: number[] = [];
  readonly #cleaning = new Set<Promise<void>>();
  readonly #used = new Set<number>();
  readonly #waiting: (() => void)[] = [];
  #growing: Promise<boolean> | undefined;

  constructor(separation: OwnSeparation, log: Log) {
    this.#separation = separation;
    this.#log = log;
    this.#blocks = new UserBlocks(separation.folder, separation.range);
  }

  async take(): Promise<TaskUser> {
    for (;;) {
      const clean = this.#free.shift();
      if (clean !== undefined) return this.#user(clean);
      const unknown = this.#unknown.shift();
      if (unknown !== undefined) {
        if (await this.#clean(unknown)) return this.#user(unknown);
      } else if (!(await this.#grow())) await this.#nextFree();
    }
  }

  give(uid: number): void {
    this.#used.delete(uid);
    const cleaning = this.#clean(uid).then((isClean) => {
      this.#cleaning.delete(cleaning);
      if (isClean) this.#free.push(uid);
      this.#waiting.shift()?.();
    });
    this.#cleaning.add(cleaning);
  }

  async stop(): Promise<void> {
    await this.#growing;
    while (this.#cleaning.size > 0) await Promise.all(this.#cleaning);
    await this.#blocks.release();
  }

  #user(uid: number): TaskUser {
    this.#used.add(uid);
    const { folder, reachesCwd, confine } = this.#separation;
    const own = makeUserFolder(folder, uid);
    const env = { HOME: own, TMPDIR: own, USER: userName, LOGNAME: userName };
    return { uid, gid: uid, env, confine, cwd: reachesCwd ? undefined : own };
  }

  /** Takes another block; false: there is none. */
  #grow(): Promise<boolean> {
    this.#growing ??= this.#takeBlock().finally(() => (this.#growing = undefined));
    return this.#growing;
  }

  async #takeBlock(): Promise<boolean> {
    const block = await this.#blocks.take();
    if (block === undefined) return false;
    const [left, accounts] = await Promise.all([usersWithProcesses(block), accountsIn(block)]);
    for (let uid = block.first; uid <= block.last; uid++) {
      if (accounts.has(uid)) continue;
      // processes of a dead worker are ended now, not when their user is needed
      if (left.has(uid)) this.give(uid);
      else this.#unknown.push(uid);
    }
    return true;
  }

  #nextFree(): Promise<void> {
    if (this.#cleaning.size === 0 && this.#used.size === 0) {
      const { first, last } = this.#separation.range;
      const message = `no user from ${first} to ${last} is left: other workers have them, or they cannot be cleaned up; give this worker a range by MILLRACE_TASK_USER`;
      return Promise.reject(new MillraceError('bad_configuration', message));
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Cleans up this user. Returns whether that succeeded. Never rejects. */
  async #clean(uid: number): Promise<boolean> {
    const why = await this.#cleanUp(uid).catch((error: unknown) => String(error));
    if (why === undefined) return true;
    this.#log.warn({ user: uid, why }, 'cleaning up a task user failed; it is not used again');
    return false;
  }

  /** Returns what is left; undefined: nothing. */
  async #cleanUp(uid: number): Promise<string | undefined> {
    const folder = makeUserFolder(this.#separation.folder, uid);
    chmodSync(folder, 0o700);
    if (!(await killEverything(uid))) return 'its processes cannot be killed';
    if (hasMemory(uid)) await runAs(uid, removeMemory, String(uid));
    if (hasMemory(uid)) return 'its shared memory cannot be removed';
    if (await isEmpty(folder)) return undefined;
    await runAs(uid, removeAll, folder);
    return (await isEmpty(folder)) ? undefined : `something in ${folder} cannot be removed`;
  }
}

/** Rounds of killing before giving up on processes that kill our shell, or fork faster than they are found. */
const maxKillRounds = 20;

/**
 * A shell of that user kills all its other processes at once. A process that kills the shell first, or traces it, is found by a
 * search. Searching all processes takes some milliseconds, so it is skipped if no process can have interfered.
 */
async function killEverything(uid: number): Promise<boolean> {
  for (let round = 0; round < maxKillRounds; round++) {
    const foundNone = (await runAs(uid, killAll, '')) === killedNone;
    if (foundNone && !canTraceOthers) return true;
    const left = await processesOf(uid);
    if (left.length === 0) return true;
    for (const pid of left) signalOne(pid, 'SIGKILL');
  }
  return false;
}

/** Without Yama, or with its scope 0, a process may trace every other process of its user. */
const canTraceOthers = readTraceScope() < 1;

function readTraceScope(): number {
  try {
    return Number(readFileSync('/proc/sys/kernel/yama/ptrace_scope', 'utf8'));
  } catch {
    return 0;
  }
}

async function isEmpty(folder: string): Promise<boolean> {
  const opened = await opendir(folder);
  try {
    return (await opened.read()) === null;
  } finally {
    await opened.close();
  }
}

/**
 * Kills every process that this user may signal, except the shell itself. The shell waits for a line from its worker: a shell that
 * began after its worker was killed would end the task of another worker that uses the number by then. A waiting shell belongs to
 * the user already, so the next worker ends it before it uses the number.
 */
const killAll = 'read -r word || exit 2; kill -s KILL -- -1 2>/dev/null';
/** The exit code if there was no process. */
const killedNone = 1;
/** `chmod` first, because a folder without write permission, such as one of Go's modules, would keep its content. */
const removeAll = 'cd -- "$0" && chmod -R u+rwx . && find . -mindepth 1 -delete';

/** The timeout of a shell; a process of its user may have stopped it. */
const shellMs = 10_000;

/** Returns the exit code; null: the shell was killed. */
function runAs(uid: number, script: string, argument: string): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const stdio = ['pipe', 'ignore', 'ignore'] as const;
    const how = { uid, gid: uid, cwd: '/', env: { PATH: '/usr/bin:/bin' }, detached: true } as const;
    const child = spawn('/bin/sh', ['-c', script, argument], { ...how, stdio: [...stdio] });
    child.stdin.on('error', () => {}); // it has ended, which its exit reports
    child.stdin.end('go\n');
    const timer = setTimeout(() => child.kill('SIGKILL'), shellMs);
    child.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once('exit', (code) => {
      clearTimeout(timer);
      resolve(code);
    });
  });
}
