/**
 * The web interface in a real Chromium against the real server: signing in, the keyboard, and live updates: one stream for
 * all tabs, no polling, resuming after the server was away, and no growth however long it is open.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seriousFaults } from '../harness/axe.ts';
import { startBrowser } from '../harness/browser.ts';
import { lastingPort } from '../harness/lasting-port.ts';
import { millrace, type Product, removeHome, startProduct } from '../harness/product.ts';
import { needs } from '../harness/services.ts';
import { type SignedIn, signIn } from '../harness/signed-in.ts';
import { until } from '../harness/until.ts';

/** `export` ends when a file is there. */
const documentWith = (file: string) => ({
  project: 'shop',
  name: 'nightly report',
  description: 'What was sold yesterday',
  tasks: [
    { name: 'export', process: { command: ['sh', '-c', `echo exporting; until [ -e ${file} ]; do sleep 0.05; done`] } },
    { name: 'send', depends: ['task/export'] },
  ],
});

describe.skipIf(!needs('chromium'))('web interface', () => {
  let product: Product;
  let browser: Browser;
  let root: SignedIn;
  let job: string;
  let file: string;

  beforeAll(async () => {
    product = await startProduct({ args: ['--port', String(await lastingPort())] });
    await product.call('PUT /api/projects', { body: { name: 'shop' } });
    file = join(product.taskFolder, 'go-on');
    ({ id: job } = await product.call('PUT /api/jobs', { body: JSON.stringify(documentWith(file)) }));
    browser = await startBrowser();
    root = await signIn(browser, product, product.rootKey);
  });
  afterAll(async () => {
    await browser.close();
    await product.stop();
    await removeHome(product.home);
  });

  const run = () => product.call('POST /api/jobs/{id}/run', { params: { id: job }, body: {} });

  it('a one-time link signs in, and works only once', async () => {
    const { stdout } = await millrace(['open'], { home: product.home });
    const link = /http\S+/.exec(stdout)?.[0] ?? '';
    const page = await (await browser.newContext()).newPage();
    await page.goto(link);
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    expect(page.url()).not.toContain('#mrl_');
    const second = await (await browser.newContext()).newPage();
    await second.goto(link);
    await second.getByText(/has been used/).waitFor();
    await Promise.all([page.context().close(), second.context().close()]);
  });

  it('after signing in, users return to the page that they requested', async () => {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${product.url}/jobs?q=report`);
    await page.getByLabel(/key/i).fill(product.rootKey);
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'nightly report' }).waitFor();
    expect(new URL(page.url()).search).toBe('?q=report');
    await page.context().close();
  });

  it('all tabs sign out and in together', async () => {
    const { context, open } = await signIn(browser, product, product.rootKey);
    const [one, other] = [await open('/jobs'), await open('/workers')];
    for (const page of [one, other]) await page.getByText('Live', { exact: true }).waitFor();
    await one.getByRole('button', { name: 'Sign out' }).click();
    for (const page of [one, other]) await page.getByLabel(/key/i).waitFor();
    await one.getByLabel(/key/i).fill(product.rootKey);
    await one.keyboard.press('Enter');
    await other.getByRole('heading', { name: 'Workers' }).waitFor();
    await context.close();
  });

  it('the first load is small and compressed', async () => {
    const { context } = await signIn(browser, product, product.rootKey);
    const page = await context.newPage();
    const devtools = await context.newCDPSession(page);
    await devtools.send('Network.enable');
    let bytes = 0;
    devtools.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
    await page.goto(product.url);
    await page.getByRole('heading', { name: 'Health' }).waitFor();
    expect(bytes).toBeGreaterThan(50_000);
    expect(bytes).toBeLessThan(300_000);
    await context.close();
  });

  it('every page shows a run at once when it starts and ends', async () => {
    const [home, jobs, runs] = [await root.open('/'), await root.open('/jobs'), await root.open(`/jobs/${job}/runs`)];
    for (const page of [home, jobs, runs]) await page.getByText('Live', { exact: true }).waitFor();
    await run();
    await runs.getByText('running').first().waitFor();
    await home.getByRole('link', { name: /1 running/ }).waitFor();
    await writeFile(file, '');
    await runs.getByRole('link', { name: 'send' }).first().waitFor();
    await home.getByRole('link', { name: /0 running/ }).waitFor();
    await jobs.getByLabel(/latest 1 instants: 1 success/).waitFor();
    for (const page of [home, jobs, runs]) await page.close();
  });

  it('all tabs share one stream, and send no requests while nothing happens', async () => {
    const paths = ['/', '/projects', '/jobs', `/jobs/${job}`, `/jobs/${job}/grid`, '/runs', '/workers', '/audit'];
    const pages = await Promise.all(paths.map((path) => root.open(path)));
    await Promise.all(pages.map((page) => page.getByText('Live', { exact: true }).waitFor()));
    const devtools = await browser.newBrowserCDPSession();
    const { targetInfos } = await devtools.send('Target.getTargets');
    const context = targetInfos.find(({ url }) => url.endsWith('/workers'))?.browserContextId;
    const workers = targetInfos.filter((t) => t.type === 'shared_worker' && t.browserContextId === context);
    expect(workers).toHaveLength(1);
    const asked: string[] = [];
    for (const page of pages) page.on('request', (request) => asked.push(request.url()));
    // a new minute is a change: counts per hour are read again
    await until('no requests are sent', async () => {
      asked.length = 0;
      await pages[0]?.waitForTimeout(4_000);
      return asked.length === 0;
    });
    await Promise.all(pages.map((page) => page.close()));
  });

  it('pages can be reached by the keyboard alone', async () => {
    const page = await root.open('/');
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('w');
    await page.getByRole('heading', { name: 'Workers' }).waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.keyboard.type('night');
    await page.getByRole('option', { name: /nightly report/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'nightly report' }).waitFor();
    await page.close();
  });

  it('no chart is wider than its column, even before it is redrawn for a new width', async () => {
    const size = { width: 390, height: 800 };
    const { context, open } = await signIn(browser, product, product.rootKey, { viewport: size });
    // as in the frame before the charts react to the new width
    await context.addInitScript(`
      const Observer = window.ResizeObserver;
      window.ResizeObserver = class extends Observer {
        constructor(tell) {
          super((entries, self) => { self.disconnect(); tell(entries, self); });
        }
      };
    `);
    const page = await open('/');
    const chart = page.getByRole('img', { name: 'Wait for a place' });
    await chart.waitFor();
    await page.setViewportSize({ ...size, width: 1280 });
    expect(await page.evaluate<unknown>('document.documentElement.scrollWidth')).toBe(1280);
    expect(Number(await chart.getAttribute('width'))).toBeGreaterThan((await chart.boundingBox())?.width ?? Infinity);
    await context.close();
  });

  it('axe finds no serious fault in the light and dark themes', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { context, open } = await signIn(browser, product, product.rootKey, { colorScheme });
      const grounds = new Set<string>();
      for (const path of ['/', `/jobs/${job}`, '/audit', '/settings']) {
        const page = await open(path);
        await page.getByRole('heading').first().waitFor();
        await page.waitForTimeout(500);
        expect([path, await seriousFaults(page)]).toEqual([path, []]);
        grounds.add(await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor'));
        await page.close();
      }
      expect([...grounds]).toEqual([colorScheme === 'light' ? 'rgb(245, 247, 247)' : 'rgb(13, 18, 20)']);
      await context.close();
    }
  }, 60_000);

  it('the settings page shows settings of PostgreSQL that cost speed, with the remedy', async () => {
    const { context, open } = await signIn(browser, product, product.rootKey);
    await context.route('**/api/installation', async (route) => {
      const answer = await route.fetch();
      const slow = [{ name: 'autovacuum', value: 'off', advice: 'Set autovacuum = on.' }];
      await route.fulfill({ json: { ...((await answer.json()) as object), database: { version: '15.18', slow } } });
    });
    const page = await open('/settings');
    await page.getByText('PostgreSQL 15.18').waitFor();
    await page.getByRole('list', { name: 'Settings of PostgreSQL that cost speed' }).waitFor();
    await page.getByText('autovacuum = off costs speed. Set autovacuum = on.').waitFor();
    await context.close();
  });

  it('a viewer is offered no actions', async () => {
    const { key } = await product.call('POST /api/keys', { body: { name: 'wall', role: 'viewer' } });
    const { context, open } = await signIn(browser, product, key);
    const page = await open(`/jobs/${job}`);
    await page.getByRole('heading', { name: 'nightly report' }).waitFor();
    for (const name of [/^Pause/, /^Run now/, /^Backfill/]) {
      expect(await page.getByRole('button', { name }).count()).toBe(0);
    }
    expect(await page.getByRole('link', { name: 'Keys' }).count()).toBe(0);
    await context.close();
  });

  it('the page does not grow, however much changes', async () => {
    const page = await root.open('/');
    await page.getByText('Live', { exact: true }).waitFor();
    const devtools = await page.context().newCDPSession(page);
    const heap = async (): Promise<number> => {
      await devtools.send('HeapProfiler.collectGarbage');
      const { usedSize } = await devtools.send('Runtime.getHeapUsage');
      return usedSize;
    };
    const busy = async (rounds: number): Promise<void> => {
      for (let n = 0; n < rounds; n++) {
        await Promise.all(Array.from({ length: 3 }, run));
        await page.waitForTimeout(200);
      }
    };
    await busy(4);
    const before = await heap();
    await busy(12);
    expect((await heap()) - before).toBeLessThan(3_000_000);
    await page.close();
  });

  it('the page reports that the server is away, and continues when it is back', async () => {
    const page = await root.open(`/jobs/${job}/runs`);
    await page.getByText('Live', { exact: true }).waitFor();
    await until(
      'all is done',
      async () => {
        const { items } = await product.call('GET /api/runs', { query: { state: 'active,running' } });
        return items.length === 0 || undefined;
      },
      60_000,
    );
    await product.stop();
    await page.getByText('Reconnecting').waitFor();
    const { port } = new URL(product.url);
    product = await startProduct({ home: product.home, args: ['--port', port] });
    const { runs } = await run();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.locator(`a[href="/runs/${runs[0]}"]`).waitFor();
    await page.close();
    // a lost connection is the only error that the browser logs by itself
    const away =
      /ERR_(?:CONNECTION_(?:REFUSED|RESET|CLOSED)|INCOMPLETE_CHUNKED|EMPTY_RESPONSE|SOCKET_NOT)|status of 503/;
    expect(root.faults.filter((fault) => !away.test(fault))).toEqual([]);
  }, 60_000);
});
