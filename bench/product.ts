/**
 * The product as users run it: `millrace up` and `millrace worker` from dist/, each in a process of its own. A benchmark
 * therefore measures what users get.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TenantEndpoints } from '../src/api/endpoints.ts';
import type { GatewayEndpoints } from '../src/gateway/installation/endpoints.ts';
import { type Client, makeClient } from '../src/http/client.ts';
import { packageFile } from '../src/kernel/process/package-files.ts';
import { atEnd } from './ending.ts';

/** No retention: one job makes more runs here than retention keeps, and the runs are counted at the end. */
const keepAll = { MILLRACE_RETENTION: 'forever', MILLRACE_RETENTION_RUNS: 'forever' };

export interface UpOptions {
  readonly home: string;
  /** The control database; without it `up` starts the home's own server. */
  readonly databaseUrl?: string;
  readonly worker: boolean;
  readonly places?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Folder for a CPU profile of Node. */
  readonly profileTo?: string | undefined;
}

export interface Program {
  readonly pid: number;
  /** Asks the process to end, and returns when it has ended. */
  stop(): Promise<void>;
}

export interface Up extends Program {
  readonly url: string;
  readonly rootKey: string;
  readonly call: Client<TenantEndpoints & GatewayEndpoints>;
  /** The counters of /metrics, by name. */
  metrics(): Promise<Map<string, number>>;
}

const main = packageFile('dist', 'main.js');

/** Resolves once `up` is healthy. */
export async function startUp(options: UpOptions): Promise<Up> {
  const args = ['up', '--home', options.home, '--port', '0', ...(options.worker ? [] : ['--no-worker'])];
  const started = start(args, {
    env: {
      ...(options.databaseUrl === undefined ? {} : { MILLRACE_DATABASE_URL: options.databaseUrl }),
      ...(options.places === undefined ? {} : { MILLRACE_MAX_TASKS: String(options.places) }),
      ...options.env,
    },
    profileTo: options.profileTo,
  });
  const url = await started.findOutput(/^Millrace \S+ at (\S+)$/m);
  const rootKey = (await readFile(join(options.home, 'root-key'), 'utf8')).trim();
  const headers = { authorization: `Bearer ${rootKey}` };
  while (!(await fetch(`${url}/healthz`)).ok) await sleep(5);
  return {
    pid: started.pid,
    stop: () => started.stop(),
    url,
    rootKey,
    call: makeClient<TenantEndpoints & GatewayEndpoints>({ base: url, headers }),
    // on a connection of its own: a server ends idle ones, and Node 20 may reuse one that has just ended
    metrics: async () =>
      parseMetrics(await (await fetch(`${url}/metrics`, { headers: { ...headers, connection: 'close' } })).text()),
  };
}

function parseMetrics(text: string): Map<string, number> {
  return new Map(
    [...text.matchAll(/^([a-z_]+) ([\d.e+-]+)$/gm)].map(([, name = '', value = '']) => [name, Number(value)]),
  );
}

export interface WorkerOptions {
  readonly url: string;
  readonly key: string;
  readonly places: number;
  /** A module with functions; the worker then runs only these. */
  readonly functions?: string;
  readonly profileTo?: string | undefined;
}

export async function startWorker({ url, key, places, functions, profileTo }: WorkerOptions): Promise<Program> {
  const env = { MILLRACE_URL: url, MILLRACE_KEY: key, MILLRACE_MAX_TASKS: String(places) };
  const args = functions === undefined ? [] : ['--functions', functions];
  const started = start(['worker', ...args], { env, profileTo });
  await started.findOutput(/^Millrace worker for (\S+)$/m);
  return started;
}

interface Started extends Program {
  /** Waits until the program's output matches, and returns the first group of the pattern. */
  findOutput(pattern: RegExp): Promise<string>;
}

function start(
  args: readonly string[],
  { env, profileTo }: { env: Readonly<Record<string, string>>; profileTo?: string | undefined },
): Started {
  const profiling = profileTo === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileTo}`];
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('MILLRACE_'));
  const child = spawn(process.execPath, [...profiling, main, ...args], {
    env: { ...Object.fromEntries(inherited), MILLRACE_LOG: 'warn', ...keepAll, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return {
    pid: child.pid ?? 0,
    stop: atEnd(() => stopChild(child)),
    async findOutput(pattern) {
      for (;;) {
        const found = pattern.exec(output)?.[1];
        if (found !== undefined) return found;
        if (child.exitCode !== null) throw new Error(`millrace ${args[0]} exited with ${child.exitCode}: ${output}`);
        await sleep(2);
      }
    },
  };
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}
