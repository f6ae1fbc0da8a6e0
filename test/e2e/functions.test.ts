/** Functions as tasks: `millrace worker --functions FILE.js` and `createWorker` against the real server, over HTTP. */
import { type ChildProcess, spawn } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createWorker } from '../../src/index.ts';
import { type Product, productMain, productNode, removeHome, startProduct } from '../harness/product.ts';
import { makeTaskFolder } from '../harness/task-folder.ts';
import { until } from '../harness/until.ts';

let product: Product;
let key: string;
let folder: string;
const children: ChildProcess[] = [];

beforeAll(async () => {
  folder = await makeTaskFolder();
  product = await startProduct({ args: ['--no-worker'] });
  await product.call('PUT /api/projects', { body: { name: 'functions' } });
  ({ key } = await product.call('POST /api/keys', { body: { name: 'box', role: 'worker' } }));
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await product.stop();
  await removeHome(product.home);
  await rm(folder, { recursive: true });
});

/** Runs a one-task job and waits for its end. */
async function run(name: string, task: object, params: Record<string, unknown> = {}) {
  const { call } = product;
  const document = { project: 'functions', name, tasks: [{ name: 'only', ...task }] };
  const { id } = await call('PUT /api/jobs', { body: JSON.stringify(document) });
  const { runs } = await call('POST /api/jobs/{id}/run', { params: { id }, body: { params } });
  const path = { id: runs[0] ?? '' };
  const ended = await until('the run ends', async () => {
    const seen = await call('GET /api/runs/{id}', { params: path });
    return seen.finished_at === null ? undefined : seen;
  });
  return { ...ended, log: await call('GET /api/runs/{id}/logs', { params: path }) };
}

it('a worker with a file of functions runs them with input, params and log', async () => {
  const file = join(folder, 'functions.mjs');
  await writeFile(
    file,
    `export function greet(input, { log, params, attempt }) { log('hello ' + input.who + ', ' + params.mood + ' ' + attempt); }
     export async function fail() { throw new Error('as planned'); }`,
  );
  const env = { ...process.env, MILLRACE_URL: product.url, MILLRACE_KEY: key };
  const args = ['worker', '--functions', file, '--runtime', 'function', '--queue', 'files'];
  children.push(spawn(productNode, [productMain, ...args], { env, stdio: 'ignore' }));
  const greeted = await run(
    'greet',
    { queue: 'files', function: { name: 'greet', input: { who: 'world' } } },
    { mood: 'calm' },
  );
  expect(greeted).toMatchObject({ state: 'success' });
  expect(greeted.log).toContain('hello world, calm 1');
  const failed = await run('fail', { queue: 'files', function: { name: 'fail' } });
  expect(failed).toMatchObject({ state: 'failure', reason: expect.stringContaining('as planned') as string });
  const unknown = await run('unknown', { queue: 'files', function: { name: 'nobody' } });
  expect(unknown).toMatchObject({ state: 'error', reason: expect.stringContaining('greet') as string });
});

it('createWorker runs functions inside your own process', async () => {
  const heard: unknown[] = [];
  const worker = createWorker({
    url: product.url,
    key,
    queues: ['own'],
    functions: { hear: (input) => void heard.push(input) },
  });
  await worker.start();
  try {
    expect(await run('own', { queue: 'own', function: { name: 'hear', input: [1, 2] } })).toMatchObject({
      state: 'success',
    });
    expect(heard).toEqual([[1, 2]]);
  } finally {
    await worker.stop();
  }
});
