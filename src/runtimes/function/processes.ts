/**
 * The runtime `function` for functions of a file (`millrace worker --functions`). Each function is called in a process that calls
 * nothing else meanwhile, so that a function that never returns, never yields, fills the memory or ends its process affects only
 * its own run (I11). Processes are reused, by runs of one tenant only: a function may leave something behind that reads the
 * credential of the next run, or answers in its place. Idle processes end.
 */
import type { Log } from '../../kernel/log.ts';
import type { Service } from '../../kernel/service.ts';
import { failed, faulty, mismatch, type Outcome, type Runtime } from '../contract.ts';
import { messageOf } from './function.ts';
import { type Calling, FunctionProcess } from './process.ts';
import type { TaskUsers } from '../users/task-users.ts';
import { Watcher } from '../process/watcher.ts';

export interface FunctionFileOptions {
  readonly file: string;
  /** The path of the built `host.ts`. */
  readonly program: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly graceMs?: number;
  readonly loadMs?: number;
  /** How long an idle process is kept for the next call. One is always kept. */
  readonly idleMs?: number;
  readonly users?: TaskUsers | undefined;
  readonly log?: Log | undefined;
}

export interface FunctionFile {
  /** Its functions, once the service has started. */
  names(): ReadonlySet<string>;
  /** Calls a function for a conductor. */
  call(work: Called, how: Calling): Promise<Outcome>;
  readonly service: Service;
}

interface Called {
  readonly name: string;
  readonly input: unknown;
}

/** The functions of a file for a conductor. */
export function functionFile(options: FunctionFileOptions): FunctionFile {
  const pool = new Pool(options);
  return {
    names: () => pool.names,
    call: (work, how) => callIn(pool, work, how),
    service: { name: 'functions', start: () => pool.start(), stop: () => pool.stop() },
  };
}

async function callIn(pool: Pool, work: Called, how: Calling): Promise<Outcome> {
  let process: FunctionProcess | undefined;
  try {
    process = await pool.takeFor(how.facts.tenant, how.signal);
  } catch (error) {
    return faulty(messageOf(error));
  }
  if (process === undefined) return failed('it was stopped before it began');
  try {
    return await process.call(work, how);
  } finally {
    pool.give(process);
  }
}

export function functionProcesses(options: FunctionFileOptions): Runtime & { readonly service: Service } {
  const pool = new Pool(options);
  return {
    name: 'function',
    serves: ['function'],
    outlives: false,
    async run({ work, facts }, output, signal) {
      if (work.kind !== 'function') return mismatch('function', work);
      return callIn(pool, { name: work.name, input: work.input }, { facts, output, signal });
    },
    service: { name: 'functions', start: () => pool.start(), stop: () => pool.stop() },
  };
}

/** Idle processes of many tenants would take too much memory, some 40 MB each. */
const maxIdle = 16;

class Pool {
  readonly #options: FunctionFileOptions;
  readonly #idleMs: number;
  #watcher: Watcher | undefined;
  readonly #all = new Set<FunctionProcess>();
  /** The tenant whose runs a process has called functions for; missing: none yet. */
  readonly #tenants = new WeakMap<FunctionProcess, string>();
  /** The most recently used one comes last. */
  readonly #idle: { readonly process: FunctionProcess; readonly sinceMs: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  names: ReadonlySet<string> = new Set();

  constructor(options: FunctionFileOptions) {
    this.#options = options;
    this.#idleMs = options.idleMs ?? 60_000;
  }

  /** Loads the functions once, so that a file that cannot be used is reported at once. */
  async start(): Promise<void> {
    if (this.#watcher) return;
    const first = await this.#start();
    this.names = first.names;
    this.give(first);
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#idle.length = 0;
    await Promise.all(Array.from(this.#all, (each) => each.end()));
    await this.#watcher?.stop();
    this.#watcher = undefined;
  }

  /** Undefined if the signal aborts first; a process that starts later is kept for other calls. */
  async takeFor(tenant: string, signal: AbortSignal): Promise<FunctionProcess | undefined> {
    if (signal.aborted) return undefined;
    const aborted = new Promise<undefined>((resolve) => {
      signal.addEventListener('abort', () => resolve(undefined), { once: true });
    });
    const taken = this.#take(tenant);
    const first = await Promise.race([taken, aborted]);
    if (first === undefined) taken.then((late) => this.give(late)).catch(() => {});
    else this.#tenants.set(first, tenant);
    return first;
  }

  async #take(tenant: string): Promise<FunctionProcess> {
    const serves = ({ process }: { readonly process: FunctionProcess }): boolean =>
      (this.#tenants.get(process) ?? tenant) === tenant;
    for (let at = this.#idle.findLastIndex(serves); at >= 0; at = this.#idle.findLastIndex(serves)) {
      const [idle] = this.#idle.splice(at, 1);
      if (idle?.process.isFree) return idle.process;
    }
    return this.#start();
  }

  async #start(): Promise<FunctionProcess> {
    const { graceMs = 5_000, loadMs = 60_000, ...options } = this.#options;
    const started = await FunctionProcess.start({ ...options, graceMs, loadMs }, await this.#watching());
    this.#all.add(started);
    void started.gone.then(() => this.#all.delete(started));
    return started;
  }

  give(process: FunctionProcess): void {
    if (!process.isFree || this.#watcher === undefined) return;
    this.#idle.push({ process, sinceMs: performance.now() });
    if (this.#idle.length > maxIdle) void this.#idle.shift()?.process.end();
    this.#schedule();
  }

  #schedule(): void {
    if (this.#idle.length < 2) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#retire();
      this.#schedule();
    }, this.#idleMs).unref();
  }

  #retire(): void {
    const before = performance.now() - this.#idleMs;
    while (this.#idle.length > 1 && (this.#idle[0]?.sinceMs ?? Infinity) <= before)
      void this.#idle.shift()?.process.end();
  }

  async #watching(): Promise<Watcher> {
    if (this.#watcher) return this.#watcher;
    const path = this.#options.environment['PATH'] ?? '/usr/bin:/bin';
    this.#watcher = new Watcher({ graceMs: 500, path, log: this.#options.log });
    await this.#watcher.start();
    return this.#watcher;
  }
}
