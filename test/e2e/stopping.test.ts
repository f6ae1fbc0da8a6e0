/** `up` is asked to end while a task ignores SIGTERM and a stream is open. It ends as docs/operations.md promises. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { waitForOutput, shell, startTask } from '../harness/one-task.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

/** The drain (5 s by default) and 3 s, with some for a busy machine. Docker kills a container 10 s after SIGTERM. */
const promisedMs = 8_000;
const slackMs = 1_500;

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

it('a stopping `up` is not ready, ends in time, leaves no processes, and returns the run', async () => {
  const { url, rootKey, child, home } = product;
  const authorization = `Bearer ${rootKey}`;
  const run = await startTask(product, shell('echo pid $$; trap "" TERM; while :; do sleep 0.05; done'));
  await waitForOutput(product, run, /pid (\d+)/);
  const stream = await fetch(`${url}/api/events`, { headers: { authorization } });
  expect(stream.status).toBe(200);

  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const askedAt = performance.now();
  child.kill('SIGTERM');
  const ready = await until('it is stopping', async () => {
    const answer = await fetch(`${url}/readyz`);
    return answer.status === 200 ? undefined : answer;
  });
  expect([ready.status, await ready.json()]).toMatchObject([503, { code: 'stopping' }]);
  const another = await fetch(`${url}/api/events`, { headers: { authorization } });
  expect([another.status, await another.json()]).toMatchObject([503, { code: 'stopping' }]);
  await stream.text().catch(() => {}); // the end of the process ends it
  expect(await exit).toBe(0);
  expect(performance.now() - askedAt).toBeLessThan(promisedMs + slackMs);
  expect(product.output()).not.toMatch(/abandoned|did not stop/);

  product = await startProduct({ home, args: ['--no-worker'] });
  const seen = await product.call('GET /api/runs/{id}', { params: { id: run } });
  expect(seen).toMatchObject({ state: 'active', attempt: 1 });
}, 60_000);
