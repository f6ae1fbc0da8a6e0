/** The web interface in a real Chromium against the real server: sign in, see the jobs, watch a run live, read its log. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startBrowser } from '../harness/browser.ts';
import { millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { needs } from '../harness/services.ts';
import { until } from '../harness/until.ts';

const job = {
  project: 'shop',
  name: 'nightly report',
  description: 'What was sold yesterday',
  triggers: [{ name: 'often', start: '2026-01-01T00:00:00Z', period: '2s', catchup: 'none' }],
  tasks: [
    {
      name: 'export',
      depends: ['trigger/often'],
      process: { command: ['sh', '-c', 'echo exporting; echo "a warning" >&2'] },
    },
    { name: 'send', depends: ['task/export'] },
  ],
};

describe.skipIf(!needs('chromium'))('the web interface', () => {
  let product: Product;
  let browser: Browser;
  let page: Page;
  const faults: string[] = [];

  beforeAll(async () => {
    product = await startProduct();
    await product.call('PUT /api/projects', { body: { name: 'shop' } });
    await product.call('PUT /api/jobs', { body: JSON.stringify(job) });
    browser = await startBrowser();
    page = await browser.newPage();
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  });
  afterAll(async () => {
    await browser.close();
    await product.stop();
    await removeHome(product.home);
  });

  async function shot(name: string): Promise<void> {
    const folder = process.env['MILLRACE_SCREENSHOTS'];
    if (folder !== undefined) await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
  }

  it('signs in by a one-time link, which is then spent', async () => {
    const { stdout } = await millrace(['open'], { home: product.home });
    const link = /http\S+/.exec(stdout)?.[0] ?? '';
    await page.goto(link);
    await page.getByRole('link', { name: 'nightly report' }).waitFor();
    expect(page.url()).not.toContain('#mrl_');
    await shot('jobs');
    const other = await browser.newContext();
    const second = await other.newPage();
    await second.goto(link);
    await second.getByText(/has been used/).waitFor();
    await other.close();
  });

  it('shows a job and the runs that come in while it is open', async () => {
    await page.getByRole('link', { name: 'nightly report' }).click();
    await page.getByText('export').first().waitFor();
    const links = page.getByRole('link', { name: /export|send/ });
    const before = await links.count();
    await until('another run is listed', async () => (await links.count()) > before || undefined);
    await shot('job');
  });

  it('shows a run with its log', async () => {
    const { items } = await product.call('GET /api/runs', { query: { state: 'success', limit: 100 } });
    const run = items.find((item) => item.task?.name === 'export');
    await page.goto(`${product.url}/runs/${run?.id}`);
    await page.getByText('exporting').waitFor();
    await page.getByText('a warning').waitFor();
    await shot('run');
  });

  it('follows events live', async () => {
    await page.goto(`${product.url}/events`);
    await page.getByText('run.finished').first().waitFor();
    await shot('events');
  });

  it('reports no fault on its console', () => expect(faults).toEqual([]));
});
