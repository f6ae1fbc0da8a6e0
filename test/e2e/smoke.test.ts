/** The first steps of a new user: start, apply a job file, watch it finish, read its log, stop. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

const job = `
project: demo
name: hello
triggers:
  - {name: often, start: 2026-01-01T00:00:00Z, period: 1s, catchup: none}
tasks:
  - name: greet
    depends: [trigger/often]
    process: {command: [sh, -c, 'echo "hello {{instant}}"; echo careful >&2']}
  - name: after
    depends: [task/greet]
`;

const msBetween = (from: string | null, to: string | null): number =>
  new Date(to ?? Number.NaN).getTime() - new Date(from ?? Number.NaN).getTime();

let product: Product;

beforeAll(async () => {
  product = await startProduct();
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

it('a job file is applied, runs within a second of its trigger, and its log can be read', async () => {
  const { home, call } = product;
  await mkdir(join(home, 'jobs'));
  await writeFile(join(home, 'jobs', 'hello.yaml'), job);
  const applied = await millrace(['apply', '-f', join(home, 'jobs'), '--create-project'], { home });
  expect(applied).toMatchObject({ code: 0 });
  // not each of them: the first run finds cold caches, and a machine may pause
  const run = await until('most of the last five runs of greet succeeded within a second', async () => {
    const { items } = await call('GET /api/runs', { query: { state: 'success' } });
    const last = items.filter((item) => item.task?.name === 'greet').slice(0, 5);
    const prompt = last.filter(({ finished_at, instant }) => msBetween(instant, finished_at) < 1_000);
    return last.length === 5 && prompt.length >= 3 ? prompt[0] : undefined;
  });
  const log = await millrace(['logs', run.id], { home });
  expect(log.stdout).toContain(`hello ${run.instant}`.slice(0, 20));
  expect(log.stdout).toContain('careful');
  await until('the task after it runs too', async () => {
    const { items } = await call('GET /api/runs', { query: { state: 'success' } });
    return items.find((item) => item.task?.name === 'after' && item.instant === run.instant);
  });
});

it('the database, server and host are gone soon after Ctrl-C', async () => {
  const startedAt = performance.now();
  expect(await product.stop()).toBe(0);
  expect(performance.now() - startedAt).toBeLessThan(8_000);
  await expect(fetch(`${product.url}/healthz`)).rejects.toThrow();
});
