/**
 * The product as a user starts it: `millrace up` from dist/, in a separate process, with its own home and port. With
 * MILLRACE_TEST_NODE set, it runs on that Node.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TenantEndpoints } from '../../src/api/endpoints.ts';
import type { GatewayEndpoints } from '../../src/gateway/installation/endpoints.ts';
import { type Client, makeClient } from '../../src/http/client.ts';
import { makeTaskFolder } from './task-folder.ts';
import { until } from './until.ts';

export const productNode = process.env['MILLRACE_TEST_NODE'] ?? process.execPath;
export const productMain = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export type Endpoints = TenantEndpoints & GatewayEndpoints;

export interface Product {
  readonly home: string;
  readonly url: string;
  readonly rootKey: string;
  /** A folder that tasks may read and write, whatever user they run as; removed by `stop`. */
  readonly taskFolder: string;
  readonly child: ChildProcess;
  readonly call: Client<Endpoints>;
  /** Everything it has printed, for messages of failing tests. */
  output(): string;
  /** Sends SIGINT like Ctrl-C; returns the exit code. */
  stop(): Promise<number | null>;
}

export interface ProductOptions {
  readonly home?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** Working directory of the process. */
  readonly cwd?: string;
}

export async function makeHomeFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'millrace-e2e-'));
}

export async function startProduct(options: ProductOptions = {}): Promise<Product> {
  const home = options.home ?? (await makeHomeFolder());
  const child = spawn(productNode, [productMain, 'up', '--home', home, '--port', '0', ...(options.args ?? [])], {
    env: { ...process.env, MILLRACE_LOG: 'warn', ...options.env },
    cwd: options.cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const url = await until('the server prints its address', () => {
    if (child.exitCode !== null) throw new Error(`up exited with ${child.exitCode}: ${output}`);
    return /^Millrace \S+ at (\S+)$/m.exec(output)?.[1];
  }).catch(async (error: unknown) => {
    await stopChild(child, 'SIGINT');
    throw new Error(`up does not start; its output: ${output}`, { cause: error });
  });
  const taskFolder = await makeTaskFolder();
  const rootKey = (await readFile(join(home, 'root-key'), 'utf8')).trim();
  await until('it is healthy', async () => (await fetch(`${url}/healthz`)).ok || undefined);
  return {
    home,
    url,
    rootKey,
    taskFolder,
    child,
    call: makeClient<Endpoints>({ base: url, headers: { authorization: `Bearer ${rootKey}` } }),
    output: () => output,
    async stop() {
      const code = await stopChild(child, 'SIGINT');
      await rm(taskFolder, { recursive: true, force: true });
      return code;
    },
  };
}

async function stopChild(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exit = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  child.kill(signal);
  return exit;
}

export interface Answer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one `millrace` command, as typed. */
export function millrace(
  args: readonly string[],
  options: { home?: string; env?: Record<string, string>; cwd?: string; input?: string } = {},
): Promise<Answer> {
  const env = {
    ...process.env,
    ...(options.home === undefined ? {} : { MILLRACE_HOME: options.home }),
    ...options.env,
  };
  return new Promise((resolve) => {
    const child = execFile(
      productNode,
      [productMain, ...args],
      { env, cwd: options.cwd, maxBuffer: 1 << 26 },
      (_, stdout, stderr) => resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    );
    child.stdin?.end(options.input ?? '');
  });
}

/** Stops what is left of a home's processes and removes it. */
export async function removeHome(home: string): Promise<void> {
  await millrace(['down'], { home });
  await rm(home, { recursive: true, force: true });
}
