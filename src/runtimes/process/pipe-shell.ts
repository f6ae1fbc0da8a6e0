/**
 * A shell at the other end of a pipe from this process. When this process dies, even by kill -9, the pipe closes, and the script
 * does what is left to do.
 *
 * 1. The shell leads a session of its own, so that signals to the group of this process do not end it; its script ignores soft
 *    signals.
 * 2. It is a shell, not a Node process: 0.4 MB instead of 40 MB (proportional set size, measured).
 * 3. If it ends before this process does, another one replaces it, and is sent the present state. If several end at once, the
 *    pauses grow, and the log says so once.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { delayMs, reconnect } from '../../kernel/backoff.ts';
import { type Log, silent } from '../../kernel/log.ts';

export interface PipeShellOptions {
  readonly script: string;
  /** `$1` and following. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly shell?: string | undefined;
  readonly log?: Log | undefined;
  /** The log line if it cannot be kept running. */
  readonly about: string;
  /** The lines that a new shell is sent. */
  state(): readonly string[];
}

/** A shell that ran for longer was killed by a user; one that did not cannot run, or is killed on purpose. */
const soonMs = 5_000;
/** The number of such failures in a row after which they are logged. */
const loggedFailures = 2;

export class PipeShell {
  readonly #options: PipeShellOptions;
  #process: ChildProcess | undefined;
  #sinceMs = 0;
  /** The number of shells in a row that ended at once. */
  #failures = 0;
  /** Set between the end of one shell and the start of the next. */
  #successor: NodeJS.Timeout | undefined;

  constructor(options: PipeShellOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    if (this.#process) return;
    const child = this.#spawn();
    try {
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve);
        child.once('error', reject);
      });
    } catch (error) {
      this.#callOff();
      this.#process = undefined;
      throw error;
    }
  }

  /** Closes the pipe, and thereby starts the end of the script. */
  async stop(): Promise<void> {
    if (this.#successor) this.#succeed();
    this.#callOff();
    const child = this.#process;
    this.#process = undefined;
    child?.stdin?.end();
  }

  /** The shell's process id, while it runs. */
  get pid(): number | undefined {
    return this.#successor ? undefined : this.#process?.pid;
  }

  send(line: string): void {
    this.#process?.stdin?.write(`${line}\n`);
  }

  #spawn(): ChildProcess {
    const { script, args, env, shell = '/bin/sh' } = this.#options;
    const child = spawn(shell, ['-c', script, 'millrace-watcher', ...args], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      cwd: '/',
      env,
    });
    this.#process = child;
    this.#sinceMs = performance.now();
    child.stdin?.on('error', () => {}); // it has ended, which is handled below
    child.on('error', (error) => this.#replace(child, error.message));
    child.once('exit', (code, signal) => this.#replace(child, `it ended with ${signal ?? `exit code ${code}`}`));
    child.unref();
    return child;
  }

  /** The shell was killed, or could not be started: another one takes over. */
  #replace(gone: ChildProcess, why: string): void {
    if (this.#process !== gone || this.#successor) return;
    if (performance.now() - this.#sinceMs >= soonMs) this.#failures = 0;
    this.#later(why);
  }

  #later(why: string): void {
    this.#failures++;
    const { log = silent, about } = this.#options;
    if (this.#failures === loggedFailures) log.warn({ why }, about);
    this.#successor = setTimeout(() => this.#succeed(), delayMs(reconnect, this.#failures - 1)).unref();
  }

  #callOff(): void {
    clearTimeout(this.#successor);
    this.#successor = undefined;
  }

  #succeed(): void {
    this.#callOff();
    try {
      this.#spawn();
    } catch (error) {
      return this.#later(String(error)); // for example, not enough memory
    }
    for (const line of this.#options.state()) this.send(line);
  }
}
