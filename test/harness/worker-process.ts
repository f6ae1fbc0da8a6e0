/** `millrace worker` as a process of its own, against a product that runs already. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Product, productMain, productNode } from './product.ts';
import { until } from './until.ts';

export interface WorkerProcess {
  readonly child: ChildProcess;
  /** What it wrote. */
  output(): string;
  /** Sends a signal and waits for the end; answers the exit code, or the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<number | string | null>;
}

export interface WorkerProcessOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Returns once it has begun to work. */
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
  await until('the worker says that it works', () => {
    if (child.exitCode !== null) throw new Error(`the worker ended with ${child.exitCode}: ${output}`);
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
