/** Runs in the web interface: a log of many megabytes, a log that grows, why a run waits, lists, and workers. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seriousFaults } from '../harness/axe.ts';
import { startBrowser } from '../harness/browser.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { needs } from '../harness/services.ts';
import { until } from '../harness/until.ts';

const lines = 150_000;
/** About nine megabytes: ten are as much as is kept of a run. */
const printMuch = `
  const line = (n) => '\\u001b[3' + (n % 8) + 'm' + n + '\\u001b[0m a line of output, as long as they mostly are';
  let text = '';
  for (let n = 1; n <= ${lines}; n++) text += line(n) + (n % 50_000 === 0 ? ' and a Needle' : '') + '\\n';
  process.stdout.write(text);`;
const printSlowly = `
  for (let n = 1; n <= 100; n++) console.log('line', n);
  let n = 100;
  setInterval(() => { console.log('line', ++n); }, 50);`;

const task = (name: string, script: string, more = {}) => ({
  name,
  process: { command: [process.execPath, '-e', script], ...more },
});
const jobs = {
  much: { tasks: [task('much', printMuch)] },
  slow: { tasks: [task('slow', printSlowly)] },
  broken: {
    tasks: [
      {
        ...task('broken', 'console.log("cannot"); process.exit(3)', {
          env: { TOKEN: { stash: 'bank' }, MODE: 'full' },
        }),
        retry: { max_attempts: 2, delay: '10ms' },
      },
    ],
  },
  elsewhere: { tasks: [{ ...task('elsewhere', ''), queue: 'gpu' }] },
  many: {
    triggers: [{ name: 'hours', start: '2026-01-01T00:00:00Z', end: '2026-01-05T12:00:00Z', period: '1h' }],
    tasks: [{ name: 'many', depends: ['trigger/hours'] }],
  },
};

describe.skipIf(!needs('chromium'))('runs in the web interface', () => {
  let product: Product;
  let browser: Browser;
  let page: Page;
  const runs = new Map<string, string>();
  const faults: string[] = [];
  let slow = '';

  beforeAll(async () => {
    product = await startProduct();
    await product.call('PUT /api/projects', { body: { name: 'shop' } });
    await product.call('PUT /api/stash/{key}', { params: { key: 'bank' }, body: Buffer.from('secret') });
    for (const [name, rest] of Object.entries(jobs)) {
      const body = JSON.stringify({ project: 'shop', name, ...rest });
      const { id } = await product.call('PUT /api/jobs', { body });
      if (name === 'slow') slow = id;
      if (name === 'slow' || name === 'many') continue;
      const ran = await product.call('POST /api/jobs/{id}/run', { params: { id }, body: {} });
      runs.set(name, ran.runs[0] ?? '');
    }
    browser = await startBrowser();
    const context = await browser.newContext({ baseURL: product.url });
    await context.request.post('/api/session', { data: { key: product.rootKey }, headers: { origin: product.url } });
    page = await context.newPage();
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  });
  afterAll(async () => {
    await browser.close();
    await product.stop();
    await removeHome(product.home);
  });

  const follow = () => page.getByRole('button', { name: 'Follow' });
  const isPressed = () => follow().getAttribute('aria-pressed');
  const row = (line: number) =>
    page.locator('.log-row', { has: page.getByRole('link', { name: `Line ${line}`, exact: true }) });
  const isInSight = async (line: number): Promise<boolean> => {
    const [own, box] = await Promise.all([row(line).boundingBox(), page.getByRole('log').boundingBox()]);
    return own !== null && box !== null && own.y >= box.y - 1 && own.y + own.height <= box.y + box.height + 1;
  };

  it('the log page shows the end of a log of megabytes, in colour, with few rows in the page', async () => {
    await page.goto(`/runs/${runs.get('much')}`);
    await page.getByText(`${lines.toLocaleString('en')} lines`).waitFor();
    await page.getByText('Complete', { exact: true }).waitFor();
    await row(lines).waitFor();
    await until('the end is in sight', () => isInSight(lines));
    expect(
      await row(lines - 7)
        .locator('.ansi-ink-1')
        .textContent(),
    ).toBe(String(lines - 7));
    expect(await page.locator('.log-row').count()).toBeLessThan(150);
    expect(await seriousFaults(page)).toEqual([]);
  });

  it('the log can be searched forward and backward, ignoring case', async () => {
    const field = page.getByRole('searchbox', { name: 'Find in the output' });
    await field.fill('needle');
    // from where one is, which is the end
    await page.getByText('3 of 3').waitFor();
    await field.press('Enter');
    await page.getByText('1 of 3').waitFor();
    await field.press('Enter');
    await page.getByText('2 of 3').waitFor();
    expect(page.url()).toContain('find=needle');
    await until('the second is in sight', () => isInSight(100_000));
    expect(await page.locator('mark[data-current]').textContent()).toBe('Needle');
    await field.press('Shift+Enter');
    await page.getByText('1 of 3').waitFor();
    await until('the first is in sight', () => isInSight(50_000));
    await field.fill('');
  });

  it('a link leads to its line, keys lead to both ends, and the end stays in view when lines wrap', async () => {
    await page.goto(`/runs/${runs.get('much')}#L77777`);
    await row(77_777).waitFor();
    await until('the line is in sight', async () => (await isInSight(77_777)) || undefined);
    expect(await row(77_777).getAttribute('data-linked')).toBe('');
    expect(await isPressed()).toBe('false');
    await page.getByRole('log').press('Home');
    await row(1).waitFor();
    await page.getByRole('log').press('End');
    await row(lines).waitFor();
    await until('it follows again', async () => (await isPressed()) === 'true' || undefined);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole('button', { name: 'Wrap' }).click();
    await until('the last line is in sight', async () => (await isInSight(lines)) || undefined);
    expect(await page.locator('html').evaluate((root) => root.scrollWidth)).toBe(390);
    await page.setViewportSize({ width: 1280, height: 720 });
  });

  it('the log page follows a growing log, and stops following when the user scrolls up', async () => {
    const ran = await product.call('POST /api/jobs/{id}/run', { params: { id: slow }, body: {} });
    await page.goto(`/runs/${ran.runs[0]}?view=log`);
    const log = page.getByRole('log');
    await log.getByText('line 110', { exact: true }).waitFor();
    await log.hover();
    await page.mouse.wheel(0, -600);
    await until('it no longer follows', async () => (await isPressed()) === 'false' || undefined);
    const scrolledTo = async () => (await log.evaluate((box) => box.scrollTop)) as number;
    let top = Number.NaN;
    await until('it has come to rest', async () => top === (top = await scrolledTo()));
    const count = async () => Number(/^\d+/.exec((await page.getByText(/^\d+ lines/).textContent()) ?? '')?.[0]);
    const before = await count();
    await until('more has come', async () => (await count()) > before + 10 || undefined);
    expect(await scrolledTo()).toBe(top);
    await follow().click();
    await until('the newest is in sight', async () => row(await count()).isVisible());
    const newest = await count();
    // switched off at the end it stays there, and does not leap to the beginning
    const end = await scrolledTo();
    await follow().click();
    await until('more has come', async () => (await count()) > newest + 10 || undefined);
    expect(await isPressed()).toBe('false');
    expect(await scrolledTo()).toBeGreaterThanOrEqual(end);
    expect(await row(1).count()).toBe(0);
    await product.call('POST /api/runs/{id}/cancel', { params: { id: ran.runs[0] ?? '' } });
    await page.getByText('Complete', { exact: true }).waitFor();
    await page.locator('.page-head').getByText('cancelled').waitFor();
  });

  it('the page shows the server’s reason why there is no log, and sends no more requests', async () => {
    const other = await page.context().newPage();
    let asked = 0;
    await other.route(/\/logs\?follow/, (route) => {
      asked++;
      return route.fulfill({ status: 403, json: { title: 'No', detail: 'this key may not see logs' } });
    });
    await other.goto(`/runs/${runs.get('much')}`);
    await other.getByRole('status').getByText('This key may not see logs').waitFor();
    await other.waitForTimeout(800);
    expect(asked).toBe(1);
    expect(await other.getByText('Nothing has been written yet.').count()).toBe(0);
    await other.close();
  });

  it('the run page says in one sentence why a run waits, and what to do', async () => {
    await page.goto(`/runs/${runs.get('elsewhere')}`);
    await page.getByText(/^It has not started: no worker alive serves the queue gpu/).waitFor();
    await page.getByText(/millrace worker --queue gpu/).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
  });

  it('the run page shows history, attempts and environment, without secrets', async () => {
    await page.goto(`/runs/${runs.get('broken')}?view=history`);
    await page.getByText(/^Ended in failure with exit code 3/).waitFor();
    await page.getByRole('link', { name: 'Attempts' }).click();
    await until('both are listed', async () => (await page.locator('tbody tr').count()) === 2 || undefined);
    await page.getByRole('link', { name: 'Environment' }).click();
    await page.getByText('hidden, from stash entry bank').waitFor();
    expect(await page.locator('main').textContent()).not.toContain('secret');
    expect(await seriousFaults(page)).toEqual([]);
  });

  it('the list of runs is live, with filters and pages in the address', async () => {
    await page.goto('/runs?state=failed');
    await until('only what failed', async () => (await page.locator('tbody tr').count()) === 2 || undefined);
    await page.goto('/runs');
    await until('a full page', async () => (await page.locator('tbody tr').count()) === 100 || undefined);
    await page.getByRole('link', { name: 'Show older' }).click();
    await page.getByRole('link', { name: 'Newest runs' }).click();
    await page.getByRole('button', { name: 'Under way' }).click();
    await page.getByRole('link', { name: 'elsewhere', exact: true }).waitFor();
    expect(page.url()).toMatch(/\/runs\?state=unfinished$/);
    expect(await seriousFaults(page)).toEqual([]);
    await page.getByRole('button', { name: 'Running' }).click();
    await page.getByRole('link', { name: 'elsewhere', exact: true }).waitFor({ state: 'detached' });
    // as Home links to it
    await page.goto('/runs?state=active');
    await page.getByRole('button', { name: 'Ready', pressed: true }).waitFor();
    await page.getByRole('link', { name: 'elsewhere', exact: true }).waitFor();
    await until('all others are done', async () => (await page.locator('tbody tr').count()) === 1);
    await page.goto('/runs?state=nonsense');
    await page.getByRole('button', { name: 'All', pressed: true }).waitFor();
    await until('a full page', async () => (await page.locator('tbody tr').count()) === 100 || undefined);
  });

  it('the focus moves to the heading when a queued run is cancelled', async () => {
    await page.goto(`/runs/${runs.get('elsewhere')}`);
    await page.getByRole('button', { name: 'Cancel run' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('it ends at once and never starts').waitFor();
    await dialog.getByRole('button', { name: 'Cancel run' }).click();
    await page.locator('.page-head').getByText('cancelled').waitFor();
    await dialog.waitFor({ state: 'detached' });
    expect(await page.locator('h1').evaluate((heading) => heading.matches(':focus'))).toBe(true);
    await page.getByRole('button', { name: 'Run task' }).waitFor();
  });

  it('the workers page shows workers with their runs, and schedulers', async () => {
    await page.goto('/workers');
    await page.getByText(/^1 up, \d+ of \d+ places taken$/).waitFor();
    await page.locator('tbody th a').click();
    await page.getByRole('heading', { name: 'Last runs' }).waitFor();
    await page.getByRole('button', { name: 'Failed' }).click();
    await until('only what failed', async () => {
      const last = page.locator('section', { hasText: 'Last runs' }).locator('tbody tr');
      return (await last.count()) === 2 || undefined;
    });
    expect(page.url()).toContain('?state=failed');
    expect(await seriousFaults(page)).toEqual([]);
    await page.goto('/schedulers');
    await page.locator('tbody').getByText('up', { exact: true }).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
  });

  it('the pages log no errors on the console', () => expect(faults).toEqual([]));
});
