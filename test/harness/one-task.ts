/** Runs one task through the product's API: applies a job, starts it, waits for the end, and reads the log as bytes. */
import type { CallAnswer } from '../../src/http/client.ts';
import { newId } from '../../src/kernel/id.ts';
import type { Endpoints, Product } from './product.ts';
import { until } from './until.ts';

export type SeenRun = CallAnswer<Endpoints['GET /api/runs/{id}']>;

const taskProject = 'one-task';

/** Starts a job with this one task; returns the id of its run. */
export async function startTask(product: Product, task: object, params: Record<string, unknown> = {}): Promise<string> {
  const { call } = product;
  await call('PUT /api/projects', { body: { name: taskProject } });
  const document = { project: taskProject, name: newId(), tasks: [{ name: 'only', ...task }] };
  const { id } = await call('PUT /api/jobs', { body: JSON.stringify(document) });
  const { runs } = await call('POST /api/jobs/{id}/run', { params: { id }, body: { params } });
  const [run] = runs;
  if (run === undefined) throw new Error('no run was started');
  return run;
}

export async function endOf(product: Product, run: string, withinMs = 40_000): Promise<SeenRun> {
  return until(
    `run ${run} ends`,
    async () => {
      const seen = await product.call('GET /api/runs/{id}', { params: { id: run } });
      return seen.finished_at === null ? undefined : seen;
    },
    withinMs,
  );
}

export async function logOf(product: Product, run: string): Promise<Buffer> {
  const response = await fetch(`${product.url}/api/runs/${run}/logs`, {
    headers: { authorization: `Bearer ${product.rootKey}` },
  });
  if (!response.ok) throw new Error(`reading the log failed with status ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

/** Starts a task, waits for its end, and reads its log. */
export async function runTask(
  product: Product,
  task: object,
  params: Record<string, unknown> = {},
): Promise<SeenRun & { readonly id: string; readonly log: Buffer; readonly text: string }> {
  const run = await startTask(product, task, params);
  const seen = await endOf(product, run, 120_000);
  const log = await logOf(product, run);
  return { ...seen, id: run, log, text: log.toString('utf8') };
}

/** Waits until the log matches; returns the first group of the pattern. */
export async function waitForOutput(product: Product, run: string, pattern: RegExp): Promise<string> {
  return until(`run ${run} prints ${pattern}`, async () => {
    const found = pattern.exec((await logOf(product, run)).toString('utf8'));
    return found === null ? undefined : (found[1] ?? '');
  });
}

export const shell = (script: string, more: object = {}): object => ({
  process: { command: ['/bin/sh', '-c', script], ...more },
});
