/**
 * One role of the product as a process that can be killed, frozen and thawed. A process that ends is started again, until
 * the role is released. A process that ends by itself is a fault, unless the database was away.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { productMain, productNode } from '../harness/product.ts';

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface RoleOptions {
  readonly name: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Whether a process may end by itself now, because something it needs to start is missing. */
  readonly mayEnd: () => boolean;
}

const restartMs = 100;

export class RoleProcess {
  readonly name: string;
  /** Processes that ended by themselves, with the end of their output. */
  readonly faults: string[] = [];
  readonly #options: RoleOptions;
  readonly #endings = new WeakMap<ChildProcess, Promise<Ending>>();
  #child: ChildProcess;
  #isWanted = true;
  #isEndRequested = false;
  #output = '';

  constructor(options: RoleOptions) {
    this.name = options.name;
    this.#options = options;
    this.#child = this.#spawn({});
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** The output of all processes so far. */
  output(): string {
    return this.#output;
  }

  /** Resolves when the current process ends. */
  ending(): Promise<Ending> {
    return this.#endings.get(this.#child) ?? Promise.reject(new Error(`${this.name} is not running`));
  }

  signal(signal: NodeJS.Signals): void {
    if (signal === 'SIGKILL' || signal === 'SIGTERM') this.#isEndRequested = true;
    this.#child.kill(signal);
  }

  /** Kills the current process with kill -9 and starts the next, with `more` added to its environment. */
  async restart(more: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.kill();
    this.#isWanted = true;
    this.#child = this.#spawn(more);
  }

  /** Kills the current process with kill -9. The next one starts on `restart`. */
  async kill(): Promise<void> {
    this.#isWanted = false;
    this.signal('SIGKILL');
    await this.ending();
  }

  /** Ends the role for good: by SIGTERM, after 8 s by SIGKILL. */
  async release(): Promise<void> {
    this.#isWanted = false;
    for (const [signal, ms] of [
      ['SIGCONT', 0],
      ['SIGTERM', 8_000],
      ['SIGKILL', 0],
    ] as const) {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
      this.signal(signal);
      const waited = new AbortController();
      await Promise.race([this.ending(), sleep(ms, undefined, { signal: waited.signal }).catch(() => {})]);
      waited.abort();
    }
    await this.ending();
  }

  #spawn(more: Readonly<Record<string, string>>): ChildProcess {
    const child = spawn(productNode, [productMain, ...this.#options.args], {
      env: { ...process.env, ...this.#options.env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (this.#output += chunk.toString()));
    const ending = new Promise<Ending>((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
    this.#endings.set(child, ending);
    this.#isEndRequested = false;
    void ending.then((end) => this.#handleExit(child, end, Object.keys(more).length > 0));
    return child;
  }

  async #handleExit(child: ChildProcess, { code, signal }: Ending, isArmed: boolean): Promise<void> {
    if (!this.#isEndRequested && !isArmed && !this.#options.mayEnd())
      this.faults.push(`${this.name} ended by itself (${signal ?? code}): ${this.#output.slice(-1_000)}`);
    if (isArmed) return;
    await sleep(restartMs);
    if (this.#isWanted && child === this.#child) this.#child = this.#spawn({});
  }
}
