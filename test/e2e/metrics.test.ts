/** /metrics of the serving process shows the work of schedulers, although they run in another process. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { until } from '../harness/until.ts';

let product: Product;
beforeAll(async () => {
  product = await startProduct();
});
afterAll(async () => {
  await product.stop();
  await removeHome(product.home);
});

async function metric(name: string): Promise<number> {
  const headers = { authorization: `Bearer ${product.rootKey}` };
  const text = await (await fetch(`${product.url}/metrics`, { headers })).text();
  const found = text.split('\n').find((line) => line.startsWith(`millrace_${name}{tenant="default"`));
  return Number(found?.split(' ').at(-1) ?? Number.NaN);
}

it('/metrics shows firings, their lateness, and caught-up instants', async () => {
  const start = new Date(Math.floor(Date.now() / 1_000) * 1_000 - 300_000).toISOString();
  const document = {
    project: 'metrics',
    name: 'ticking',
    description: '',
    triggers: [{ name: 't', start, period: '1s' }],
    tasks: [{ name: 'a', depends: ['trigger/t'] }],
  };
  await product.call('POST /api/projects', { body: { name: document.project } });
  const { id } = await product.call('PUT /api/jobs', { body: JSON.stringify(document) });
  await until('it fires', async () => (await metric('trigger_firings_total')) >= 2 || undefined);
  await until('what was missed is caught up', async () => (await metric('catchup_firings_total')) >= 299 || undefined);
  expect(await metric('trigger_lateness_seconds_count')).toBeGreaterThanOrEqual(2);
  expect(await metric('trigger_lateness_seconds_sum')).toBeGreaterThan(0);
  expect(await metric('runs_triggered_total')).toBeGreaterThanOrEqual(301);
  expect(await metric('triggers_queued')).toBe(1);
  expect(await metric('retries_total')).toBe(0);
  expect((await product.call('GET /api/jobs/{id}', { params: { id } })).next_firing).toMatchObject({
    trigger_name: 't',
  });
});
