/** `millrace why` on the real product: a task that no worker serves, one that waits for it, and the trigger before both. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';
import { pageIn } from '../../src/http/client.ts';

let product: Product;
beforeAll(async () => {
  product = await startProduct();
  await product.call('PUT /api/projects', { body: { name: 'shop' } });
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

const why = (what: string) => millrace(['why', what], { home: product.home });

it('`why` explains a run on a queue without workers, and the task that waits for it', async () => {
  const { call } = product;
  const document = {
    project: 'shop',
    name: 'nightly',
    triggers: [{ name: 'yearly', start: '2999-01-01T00:00:00Z', period: '365d' }],
    tasks: [
      { name: 'train', queue: 'gpu', depends: ['trigger/yearly'] },
      { name: 'tell', depends: ['task/train'] },
    ],
  };
  const { id } = await call('PUT /api/jobs', { body: JSON.stringify(document) });
  await until(
    'the worker has been heard of',
    async () => pageIn(await call('GET /api/workers')).items.length > 0 || undefined,
  );
  const instant = '2026-01-31T00:00:00Z';
  const { runs } = await call('POST /api/jobs/{id}/run', { params: { id }, body: { instant } });

  const run = await why(runs[0] ?? '');
  expect(run).toMatchObject({ code: 0, stderr: '' });
  expect(run.stdout).toContain(
    `shop/nightly/task/train at ${instant} has not started: no worker alive serves the queue gpu with the runtime none`,
  );
  expect(run.stdout).toContain('key:root ran the job');
  expect(run.stdout).toContain('start one: millrace worker --queue gpu');

  const newest = await why('shop/nightly/tell');
  expect(newest.stdout).toContain('task/train is queued for');
  expect((await why(`shop/nightly/tell@${instant}`)).stdout).toBe(newest.stdout);

  const trigger = await why('shop/nightly/trigger/yearly');
  expect(trigger.stdout).toContain('its next instant is due at 2999-01-01T00:00:00Z');
});
