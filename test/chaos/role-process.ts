/**
 * One role of the product as a process that can be killed, frozen and thawed. It is started again when it ends, until it
 * is let go. How each of its lives ended is kept: one that ended by itself is a fault, unless the database was away.
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
  /** Whether a process may end by itself now, because what it needs to start is not there. */
  readonly mayEnd: () => boolean;
}

const restartMs = 100;

export class RoleProcess {
  readonly name: string;
  /** Lives that ended unasked, with the end of what they said. */
  readonly faults: string[] = [];
  readonly #options: RoleOptions;
  readonly #endings = new WeakMap<ChildProcess, Promise<Ending>>();
  #child: ChildProcess;
  #wanted = true;
  #asked = false;
  #output = '';

  constructor(options: RoleOptions) {
    this.name = options.name;
    this.#options = options;
    this.#child = this.#spawn({});
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Everything that all its lives wrote. */
  output(): string {
    return this.#output;
  }

  /** How the present life ends. */
  ending(): Promise<Ending> {
    return this.#endings.get(this.#child) ?? Promise.reject(new Error(`${this.name} is not running`));
  }

  signal(signal: NodeJS.Signals): void {
    if (signal === 'SIGKILL' || signal === 'SIGTERM') this.#asked = true;
    this.#child.kill(signal);
  }

  /** Ends this life by kill -9 and begins the next, with more in its environment perhaps. */
  async restart(more: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.away();
    this.#wanted = true;
    this.#child = this.#spawn(more);
  }

  /** Ends this life by kill -9; the next begins when it is restarted. */
  async away(): Promise<void> {
    this.#wanted = false;
    this.signal('SIGKILL');
    await this.ending();
  }

  /** Ends it for good: asks, and insists. */
  async release(): Promise<void> {
    this.#wanted = false;
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
    this.#asked = false;
    void ending.then((end) => this.#ended(child, end, Object.keys(more).length > 0));
    return child;
  }

  async #ended(child: ChildProcess, { code, signal }: Ending, armed: boolean): Promise<void> {
    if (!this.#asked && !armed && !this.#options.mayEnd())
      this.faults.push(`${this.name} ended by itself (${signal ?? code}): ${this.#output.slice(-1_000)}`);
    if (armed) return;
    await sleep(restartMs);
    if (this.#wanted && child === this.#child) this.#child = this.#spawn({});
  }
}
