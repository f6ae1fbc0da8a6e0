/**
 * A process that calls the functions of a file, from its worker's side. It calls one function at a time, and can be killed whatever
 * the function does. Its messages are validated, and an invalid one ends it.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import { MillraceError } from '../../errors.ts';
import { newId } from '../../kernel/id.ts';
import { within } from '../../kernel/service.ts';
import { type CallFacts, failed, graceMs, type Outcome, type Output, type RunFacts } from '../contract.ts';
import { descriptors, type HostMessage, LineReader, type Order, parseMessage } from './wire.ts';
import { resultOfText } from '../task/result.ts';
import { markVariable, preferForOom, TaskProcesses } from '../process/task-processes.ts';
import type { TaskUser, TaskUsers } from '../users/task-users.ts';
import type { Watcher } from '../process/watcher.ts';

export interface FunctionProcessOptions {
  readonly file: string;
  /** The path of the built `host.ts`. */
  readonly program: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** How long a function may take to return after it was asked to stop. */
  readonly graceMs: number;
  /** How long loading the functions may take. */
  readonly loadMs: number;
  /** Without it, functions run as the user of this process. */
  readonly users?: TaskUsers | undefined;
}

/**
 * The prefix of the worker's own settings, such as keys and addresses of databases. They are not passed on to functions, which get
 * the API's address and a credential of their run with each call.
 */
const withheld = 'MILLRACE_';
/** How long to read remaining messages of an ended process. */
const lingerMs = 500;
/** How long a process has to end by itself once it is not needed. */
const farewellMs = 1_000;

interface Call {
  readonly output: Output;
  settle(outcome: Outcome): void;
}

export class FunctionProcess {
  readonly #options: FunctionProcessOptions;
  readonly #child: ChildProcess;
  readonly #processes: TaskProcesses;
  readonly #orders: Writable;
  readonly #messages: Readable;
  readonly #reader = new LineReader();
  /** Resolves once the process has ended and all its messages are read. */
  readonly gone: Promise<void>;
  /** The functions of its file. */
  names: ReadonlySet<string> = new Set();
  #isGone = false;
  #isDoomed = false;
  #isSpent = false;
  /** The number of prints that the sink has not accepted yet. */
  #untaken = 0;
  #call: Call | undefined;
  #onLoaded: ((refusal: string | undefined) => void) | undefined;

  private constructor(options: FunctionProcessOptions, child: ChildProcess, mark: string) {
    this.#options = options;
    this.#child = child;
    this.#processes = new TaskProcesses(child.pid ?? 0, mark);
    this.#orders = child.stdio[descriptors.fromWorker] as Writable;
    this.#messages = child.stdio[descriptors.toWorker] as Readable;
    this.#orders.on('error', () => {}); // it has ended, which its exit reports
    this.#messages.on('error', () => {});
    this.#messages.on('data', (data: Buffer) => this.#receive(data));
    this.gone = this.#ending();
  }

  /** Resolves once its functions are loaded; rejects with the reason if they cannot be. */
  static async start(options: FunctionProcessOptions, watcher: Watcher): Promise<FunctionProcess> {
    const mark = newId();
    const user = await options.users?.take();
    watcher.announce(mark);
    const release = (): void => {
      watcher.ended(mark);
      options.users?.give(user);
    };
    let started: FunctionProcess | undefined;
    try {
      started = await FunctionProcess.#spawned(options, mark, user);
      watcher.began(mark, started.#processes.leader);
      void started.gone.then(release);
      await started.#loaded();
      return started;
    } catch (error) {
      if (started === undefined) release();
      throw user === undefined ? error : withUser(error, user, options);
    }
  }

  static async #spawned(
    options: FunctionProcessOptions,
    mark: string,
    user: TaskUser | undefined,
  ): Promise<FunctionProcess> {
    const passed = Object.entries(options.environment).filter(([name]) => !name.startsWith(withheld));
    const env: NodeJS.ProcessEnv = { ...Object.fromEntries(passed), ...user?.env, [markVariable]: mark };
    const [command, ...args] = [...(user?.confine ?? []), process.execPath, options.program, options.file];
    const child = spawn(command, args, {
      env,
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'pipe', 'pipe'],
      ...(user === undefined ? {} : { uid: user.uid, gid: user.gid }),
      ...(user?.cwd === undefined ? {} : { cwd: user.cwd }),
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    if (child.pid !== undefined) preferForOom(child.pid);
    return new FunctionProcess(options, child, mark);
  }

  async #loaded(): Promise<void> {
    const { loadMs } = this.#options;
    const timer = setTimeout(() => this.#onLoaded?.(`their process did not load them within ${loadMs} ms`), loadMs);
    const refusal = await new Promise<string | undefined>((resolve) => {
      this.#onLoaded = resolve;
    });
    this.#onLoaded = undefined;
    clearTimeout(timer);
    if (refusal === undefined) return;
    await this.#kill();
    throw new MillraceError('bad_configuration', refusal);
  }

  /** Whether it can take a call. */
  get isFree(): boolean {
    return !this.#isGone && !this.#isDoomed && !this.#isSpent && this.#call === undefined;
  }

  async call(work: { name: string; input: unknown }, how: Calling): Promise<Outcome> {
    const { facts, output, signal } = how;
    if (signal.aborted) return failed('it was stopped before it began');
    const outcome = new Promise<Outcome>((resolve) => {
      this.#call = { output, settle: resolve };
    });
    let timer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      const ms = graceMs(signal, this.#options.graceMs);
      this.#send({ stop: String(signal.reason) });
      timer = setTimeout(() => this.#giveUp(ms), ms);
    };
    signal.addEventListener('abort', stop, { once: true });
    this.#send({ call: { ...work, facts } });
    if (this.#isGone) this.#settle(failed('its process has just ended'));
    try {
      return await outcome;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      if (this.#isSpent) void this.end();
    }
  }

  /** Ends the process. It may be in the middle of a call only if the result of that call is not needed. */
  async end(): Promise<void> {
    this.#orders.end();
    await within(farewellMs, this.gone);
    if (!this.#isGone) await this.#kill();
  }

  #giveUp(ms: number): void {
    void this.#kill();
    this.#settle(failed(`the function did not return within ${ms} ms of being asked to stop, and was killed`));
  }

  async #kill(): Promise<void> {
    this.#isDoomed = true;
    await this.#processes.kill(0);
  }

  #send(order: Order): void {
    if (!this.#isGone) this.#orders.write(`${JSON.stringify(order)}\n`);
  }

  #settle(outcome: Outcome): void {
    const call = this.#call;
    this.#call = undefined;
    call?.settle(outcome);
  }

  #receive(data: Buffer): void {
    try {
      for (const line of this.#reader.push(data)) this.#handle(parseMessage(line));
    } catch {
      this.#settle(failed('its process sent an invalid message, and was killed'));
      this.#onLoaded?.('their process sent an invalid message');
      void this.#kill();
    }
  }

  /** Throws if the process may not send this message now: what a function left behind must not speak for the next run. */
  #handle(message: HostMessage): void {
    if (this.#isDoomed) return;
    if ('spent' in message) return this.#spend();
    const isOfLoading = 'ready' in message || 'refused' in message;
    if (isOfLoading ? this.#onLoaded === undefined : this.#call === undefined) throw new Error('out of turn');
    if ('print' in message) this.#print(message);
    else if ('end' in message) this.#settle(outcomeOf(message));
    else if ('refused' in message) this.#onLoaded?.(message.refused);
    else {
      this.names = namesOf(message.functions);
      this.#onLoaded?.(undefined);
    }
  }

  /** No more calls; the call under way may finish. */
  #spend(): void {
    if (this.#isSpent) return;
    this.#isSpent = true;
    if (this.#call === undefined) void this.end();
  }

  /** While the sink accepts no more, nothing is read, and the function is slowed down. */
  #print({ stream, print }: Extract<HostMessage, { print: string }>): void {
    const taken = this.#call?.output.write(stream, Buffer.from(print, 'base64'));
    if (!taken) return;
    this.#untaken++;
    this.#messages.pause();
    const resume = (): void => {
      if (--this.#untaken === 0) this.#messages.resume();
    };
    taken.then(resume, resume);
  }

  async #ending(): Promise<void> {
    const read = new Promise((resolve) => this.#messages.once('close', resolve));
    const how = await new Promise<string>((resolve) => {
      this.#child.once('exit', (code, signal) => resolve(endingOf(code, signal)));
    });
    // a grandchild may hold the pipe open
    await within(lingerMs, read);
    this.#isGone = true;
    this.#messages.destroy();
    this.#settle(failed(`its process ${how} before the function returned`));
    this.#onLoaded?.(`their process ${how} while it loaded them`);
  }
}

/** The result is validated, because the process may have written anything. */
function outcomeOf({ end, reason, result, unkept, code }: Extract<HostMessage, { end: string }>): Outcome {
  const kept = result === undefined ? {} : resultOfText(result);
  const more = { ...(unkept !== undefined && { unkept }), ...(code !== undefined && { code }) };
  return { state: end, exitCode: null, reason, ...kept, ...more };
}

/** The names are validated, because the file's own code has run in that process. */
function namesOf(text: string): ReadonlySet<string> {
  return new Set(z.array(z.string()).parse(JSON.parse(text)));
}

export interface Calling {
  readonly facts: RunFacts | CallFacts;
  readonly output: Output;
  readonly signal: AbortSignal;
}

function endingOf(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal === null) return `ended with exit code ${code}`;
  const hint = signal === 'SIGABRT' || signal === 'SIGKILL' ? ' (perhaps it was short of memory)' : '';
  return `was ended by ${signal}${hint}`;
}

/** The most likely reason why a task user cannot load a file is that only root can read it. */
function withUser(error: unknown, { uid }: TaskUser, { file, program }: FunctionProcessOptions): MillraceError {
  const why = error instanceof Error ? error.message : String(error);
  const needed = `functions run as user ${uid}, who must be able to read ${file}, ${program} and ${process.execPath}`;
  return new MillraceError('bad_configuration', `${why} (${needed}; see docs/security.md)`, { cause: error });
}
