/** `millrace worker` in a separate process, connected to a running product. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Product, productMain, productNode } from './product.ts';
import { until } from './until.ts';

export interface WorkerProcess {
  readonly child: ChildProcess;
  /** Everything it has printed. */
  output(): string;
  /** Sends a signal and waits for the end; returns the exit code, or the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<number | string | null>;
}

export interface WorkerProcessOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Resolves once the worker is running. */
export async function startWorkerProcess(
  { url, call }: Pick<Product, 'url' | 'call'>,
  options: WorkerProcessOptions = {},
): Promise<WorkerProcess> {
  const { key } = await call('POST /api/keys', { body: { name: 'worker under test', role: 'worker' } });
  const child = spawn(productNode, [productMain, 'worker', ...(options.args ?? [])], {
    env: { ...process.env, MILLRACE_LOG: 'warn', MILLRACE_URL: url, MILLRACE_KEY: key, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await until('the worker prints that it is running', () => {
    if (child.exitCode !== null) throw new Error(`the worker exited with ${child.exitCode}: ${output}`);
    return output.includes('Millrace worker for') || undefined;
  });
  return {
    child,
    output: () => output,
    async end(signal) {
      if (child.exitCode === null && child.signalCode === null) {
        const exit = once(child, 'exit');
        child.kill(signal);
        await exit;
      }
      return child.exitCode ?? child.signalCode;
    },
  };
}
