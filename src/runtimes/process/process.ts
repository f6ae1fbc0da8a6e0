/**
 * The runtime `process`: a command in a process group of its own, on the worker's machine.
 *
 * 1. The run is over when the main process has ended. Processes that it left in its group or session are ended, too. A process
 *    that left both (`setsid`) outlives the run, unless the task had a user of its own: then all processes of that user are killed.
 * 2. A kill is soft (SIGTERM), then hard (SIGKILL) after a grace, always of the whole group; on Linux also of processes that left
 *    the group, found by their session or environment.
 * 3. When the worker dies, its watcher does the same (I4).
 * 4. The environment has the declared variables, the documented ones, and of the worker's own only `inherited`.
 * 5. Standard output and standard error are one pipe, because only then is their order kept.
 * 6. The content of the file `MILLRACE_RESULT` is the result.
 * 7. It runs as the user from `task-users.ts`, and the kernel kills it before Millrace if memory runs out.
 */
import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { accessSync, closeSync, constants, existsSync, fchownSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Log } from '../../kernel/log.ts';
import type { Service } from '../../kernel/service.ts';
import {
  failed,
  faulty,
  graceMs,
  mismatch,
  type Outcome,
  type Output,
  type Runtime,
  success,
  type Task,
} from '../contract.ts';
import { isReachable, takeLate } from './late-steps.ts';
import { Leftovers } from './leftovers.ts';
import { PipeStock } from './pipes.ts';
import { Pump } from './pump.ts';
import { ResultFile, resultVariable } from './result-file.ts';
import { markVariable, preferForOom, TaskProcesses } from './task-processes.ts';
import type { TaskUser, TaskUsers } from '../users/task-users.ts';
import { Watcher } from './watcher.ts';

/** The variables that a process inherits from its worker's environment. */
const inherited = ['PATH', 'HOME', 'LANG', 'TZ', 'TMPDIR'] as const;

export interface ProcessOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The time between the soft and the hard kill. */
  readonly graceMs?: number;
  /** The same when the worker is dead: shorter, because the run may soon start on another worker. */
  readonly orphanGraceMs?: number;
  /** How long remaining processes may write output after the main process has ended, and how long they have to end. */
  readonly lingerMs?: number;
  /** Without it, tasks run as the user of this process. */
  readonly users?: TaskUsers | undefined;
  readonly log?: Log | undefined;
}

type Process = Extract<Task['work'], { kind: 'process' }> & { readonly user: TaskUser | undefined };
type Ending = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** Resources that exist while the runtime's service runs. */
interface Equipment {
  readonly stock: PipeStock;
  readonly watcher: Watcher;
  readonly leftovers: Leftovers;
}

export function processRuntime(options: ProcessOptions): Runtime & { readonly service: Service } {
  let equipment: Promise<Equipment> | undefined;
  const equip = (): Promise<Equipment> => (equipment ??= makeEquipment(options));
  return {
    name: 'process',
    serves: ['process'],
    outlives: false,
    async run(task, output, signal) {
      if (task.work.kind !== 'process') return mismatch('process', task.work);
      if (signal.aborted) return failed('it was stopped before it began');
      const equipped = await equip();
      const user = await options.users?.take();
      try {
        const started = await new Execution(options, equipped, task, { ...task.work, user }).start(output);
        return 'state' in started ? started : await started.finish(signal);
      } finally {
        options.users?.give(user);
      }
    },
    service: {
      name: 'processes',
      async start() {
        await equip();
      },
      async stop() {
        const made = await equipment;
        equipment = undefined;
        await made?.leftovers.stop();
        await made?.watcher.stop();
        await made?.stock.remove();
      },
    },
  };
}

async function makeEquipment(options: ProcessOptions): Promise<Equipment> {
  const stock = await PipeStock.make();
  const path = options.environment['PATH'] ?? '/usr/bin:/bin';
  const { orphanGraceMs = 2_000, log } = options;
  const watcher = new Watcher({ graceMs: orphanGraceMs, folder: stock.folder, path, log });
  await watcher.start();
  return { stock, watcher, leftovers: new Leftovers() };
}

interface Started {
  readonly processes: TaskProcesses;
  readonly ending: Promise<Ending>;
  readonly pump: Pump;
  readonly result: ResultFile;
}

/** One task's processes, from the spawn to the end of the last. */
class Execution {
  readonly #options: ProcessOptions;
  readonly #equipment: Equipment;
  readonly #task: Task;
  readonly #work: Process;
  readonly #mark: string;

  constructor(options: ProcessOptions, equipment: Equipment, task: Task, work: Process) {
    this.#options = options;
    this.#equipment = equipment;
    this.#task = task;
    this.#work = work;
    this.#mark = `${task.facts.lease}.${task.facts.run}`;
  }

  /** Returns an object to finish, or the outcome if the process did not start. */
  async start(output: Output): Promise<Outcome | { finish(signal: AbortSignal): Promise<Outcome> }> {
    const { watcher, leftovers } = this.#equipment;
    watcher.announce(this.#mark);
    const started = await this.#spawn(output).catch((error: unknown) => this.#refusal(error));
    if ('state' in started) {
      watcher.ended(this.#mark);
      return started;
    }
    const { leader } = started.processes;
    watcher.began(this.#mark, leader);
    leftovers.began(leader);
    return { finish: (signal) => this.#finish(signal, started) };
  }

  async #spawn(output: Output): Promise<Started> {
    const { stock } = this.#equipment;
    const pipe = await stock.take();
    let result: ResultFile | undefined;
    try {
      const { user } = this.#work;
      result = new ResultFile(stock.folder, this.#mark, user);
      // a task that opens /dev/stderr opens this pipe again, as its user
      if (user !== undefined) fchownSync(pipe.write, user.uid, user.gid);
      const child = this.#child(pipe.write, result.path);
      const leader = child.pid ?? (await spawnFailure(child));
      preferForOom(leader);
      const ending = new Promise<Ending>((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
      return { processes: new TaskProcesses(leader, this.#mark), ending, pump: new Pump(pipe.read, output), result };
    } catch (error) {
      result?.remove();
      closeSync(pipe.read);
      throw error;
    } finally {
      closeSync(pipe.write);
    }
  }

  #child(out: number, resultPath: string): ChildProcess {
    const env: Record<string, string> = {};
    for (const name of inherited) {
      const value = this.#options.environment[name];
      if (value !== undefined) env[name] = value;
    }
    const { user } = this.#work;
    Object.assign(env, user?.env, this.#task.env, { [markVariable]: this.#mark, [resultVariable]: resultPath });
    const cwd = this.#work.cwd ?? user?.cwd;
    const how = { detached: true, stdio: ['ignore', out, out] } satisfies SpawnOptions;
    if (user === undefined) {
      const [file = '', ...args] = this.#work.command;
      return spawn(file, args, { ...how, env, ...(cwd === undefined ? {} : { cwd }) });
    }
    return this.#childOf(user, env, { ...how, uid: user.uid, gid: user.gid });
  }

  /** No setting of the task takes effect before its process has become the task's user, and confined. */
  #childOf(user: TaskUser, env: Record<string, string>, how: SpawnOptions): ChildProcess {
    const wished = this.#work.cwd === null ? undefined : resolve(this.#work.cwd);
    if (wished !== undefined && !isReachable(join(wished, 'any'), user)) throw refusedAs('EACCES', wished);
    if (wished !== undefined && !existsSync(wished)) throw refusedAs('ENOENT', wished);
    // behind another program, a missing command would look like a failure of that program
    findCommand(this.#work.command[0] ?? '', { path: env['PATH'], cwd: wished ?? user.cwd, user });
    const { command, env: early } = takeLate({ command: this.#work.command, env }, wished);
    const [file = '', ...args] = [...user.confine, ...command];
    return spawn(file, args, { ...how, env: early, ...(user.cwd === undefined ? {} : { cwd: user.cwd }) });
  }

  #refusal(error: unknown): Outcome {
    const [command = ''] = this.#work.command;
    const { cwd } = this.#work;
    const { user } = this.#work;
    if (cwd !== null && user !== undefined && !isReachable(join(resolve(cwd), 'any'), user))
      return faulty(`the folder "${cwd}" (cwd) is closed to tasks, which run as user ${user.uid} (docs/security.md)`);
    if (cwd !== null && !existsSync(cwd)) return faulty(`the folder "${cwd}" (cwd) does not exist on this worker`);
    const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
    // a folder of PATH that this user may not enter hides that the command is in none of the others
    const isHidden = code === 'EACCES' && user !== undefined && !command.includes('/');
    const known = typeof code === 'string' ? refusals[isHidden ? 'ENOENT' : code] : undefined;
    const as = code === 'EACCES' && user !== undefined ? `; tasks run as user ${user.uid} (docs/security.md)` : '';
    return faulty(`the command "${command}" ${known ?? `could not be started: ${String(error)}`}${as}`);
  }

  async #finish(signal: AbortSignal, { ending, processes, pump, result }: Started): Promise<Outcome> {
    const lingerMs = this.#options.lingerMs ?? 500;
    const kill = this.#armKill(signal, processes);
    try {
      const end = await ending;
      // the group has its grace as a whole, even if its leader ended sooner
      if (signal.aborted) await kill.killed;
      await pump.drained(lingerMs);
      if (signal.aborted) await kill.killed;
      else await processes.endRest(lingerMs);
      return { ...outcomeOf(end), ...result.read() };
    } finally {
      result.remove();
      kill.disarm();
      this.#equipment.watcher.ended(this.#mark);
      this.#equipment.leftovers.ended(processes.leader);
    }
  }

  /** `killed` resolves when all processes have ended, after the signal has aborted. */
  #armKill(signal: AbortSignal, processes: TaskProcesses): { killed: Promise<void>; disarm(): void } {
    let strike = (): void => {};
    const killed = new Promise<void>((resolve) => {
      strike = () => void processes.kill(graceMs(signal, this.#options.graceMs ?? 5_000)).finally(resolve);
    });
    if (signal.aborted) strike();
    else signal.addEventListener('abort', strike, { once: true });
    return { killed, disarm: () => signal.removeEventListener('abort', strike) };
  }
}

/** Where to search for a command. */
interface Whereabouts {
  readonly path: string | undefined;
  readonly cwd: string | undefined;
  readonly user: TaskUser;
}

/**
 * Throws with the error code of the system if the command cannot be executed. Folders that the task's user may not enter reveal
 * nothing.
 */
function findCommand(command: string, { path = '/usr/bin:/bin', cwd = '.', user }: Whereabouts): void {
  const look = (file: string): void => {
    if (!isReachable(file, user)) throw refusedAs('EACCES', file);
    accessSync(file, constants.X_OK);
  };
  if (command.includes('/')) return look(resolve(cwd, command));
  const isIn = (folder: string): boolean => {
    try {
      look(resolve(cwd, folder, command));
      return true;
    } catch {
      return false;
    }
  };
  if (command === '' || !path.split(':').some(isIn)) throw refusedAs('ENOENT', command);
}

function refusedAs(code: 'ENOENT' | 'EACCES', what: string): Error {
  return Object.assign(new Error(`${what}: ${code}`), { code });
}

const refusals: Readonly<Record<string, string>> = {
  ENOENT: 'was not found (or the interpreter that its first line names)',
  EACCES: 'may not be executed: it is not an executable file, or the user of the task may not read it',
  ENOEXEC: 'is not a program for this machine',
  E2BIG: 'has more arguments and environment than this machine allows; large parameters are better read from the API',
  ERR_INVALID_ARG_VALUE: 'cannot be started: it is empty, or an argument, the folder or a variable holds a NUL byte',
};

/** A child without a process id did not start, and emits the reason. */
function spawnFailure(child: ChildProcess): Promise<never> {
  return new Promise((_, reject) => child.once('error', reject));
}

function outcomeOf({ code, signal }: Ending): Outcome {
  if (code === 0) return { ...success, exitCode: 0 };
  if (code !== null) return failed(`it ended with exit code ${code}`, code);
  const hint = signal === 'SIGKILL' ? ' (if no user killed it, the machine may be short of memory)' : '';
  return failed(`it was ended by ${signal ?? 'an unknown signal'}${hint}`);
}
