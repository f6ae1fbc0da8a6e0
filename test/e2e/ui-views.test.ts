/**
 * The views of a job in a real Chromium: its graph changes with its runs and opens a token, its grid scrolls through ten
 * thousand instants, its timeline and durations show its runs.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onDatabase } from '../../src/postgres/address.ts';
import { withClient } from '../../src/postgres/databases.ts';
import { seriousFaults } from '../harness/axe.ts';
import { startBrowser } from '../harness/browser.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { controlAddress } from '../harness/second-tenant.ts';
import { needs } from '../harness/services.ts';
import { until } from '../harness/until.ts';

const instants = 10_000;
const oldest = '2026-01-01T00:00:00.000Z';
const newest = new Date(Date.parse(oldest) + (instants - 1) * 60_000).toISOString();

/** `wait` ends when a file exists; `check` fails, and `tell` runs after that failure. */
const pipeline = (file: string) => ({
  project: 'shop',
  name: 'pipeline',
  tasks: [
    { name: 'wait', process: { command: ['sh', '-c', `until [ -e ${file} ]; do sleep 0.05; done`] } },
    { name: 'check', depends: ['task/wait'], process: { command: ['sh', '-c', 'exit 3'] } },
    { name: 'load', depends: ['task/check'] },
    { name: 'tell', depends_failure: ['task/check'] },
  ],
});

/** Nothing of it ever runs. */
const idle = {
  project: 'shop',
  name: 'idle',
  triggers: [{ name: 'yearly', start: '2100-01-01T00:00:00Z', period: '365d' }],
  tasks: [{ name: 'sum up', depends: ['trigger/yearly', 'long/task/tidy'] }],
};

const long = {
  project: 'shop',
  name: 'long',
  tasks: ['extract', 'clean', 'join', 'count', 'send', 'tidy'].map((name, n, names) => ({
    name,
    ...(n === 0 ? {} : { depends: [`task/${names[n - 1]}`] }),
  })),
};

async function writeInstants(product: Product, job: string): Promise<void> {
  const control = await controlAddress(product.home);
  const tenant = await withClient(control, async (client) => {
    const { rows } = await client.query<{ database: string }>(
      `select database from control.tenant where name = 'default'`,
    );
    return onDatabase(control, rows[0]?.database ?? '');
  });
  await withClient(tenant, async (client) => {
    await client.query('set search_path to millrace');
    const from = `from task, generate_series(0, ${instants - 1}) n where task.job_id = '${job}'`;
    const at = `timestamptz '${oldest}' + n * interval '1 minute'`;
    await client.query(
      `insert into token (task_id, instant, count, fire, reach, priority) select id, ${at}, 0, 1, 1, 'normal' ${from}`,
    );
    await client.query(
      `insert into run (id, task_id, instant, origin, version, attempt, priority, lease, state, queued_at, started_at,
                        finished_at)
       select new_id(), id, ${at}, 'token', 1, 1, 'normal', 1,
              case when name = 'send' and n % 7 = 0 then 'failure' else 'success' end::run_state, ${at}, ${at},
              ${at} + interval '2 seconds' ${from}`,
    );
    await client.query('analyze token; analyze run');
  });
}

describe.skipIf(!needs('chromium'))('views of a job', () => {
  let product: Product;
  let browser: Browser;
  let page: Page;
  let file: string;
  const jobs = { pipeline: '', long: '', idle: '' };
  const faults: string[] = [];

  beforeAll(async () => {
    // the instants that are written below are long past
    product = await startProduct({ env: { MILLRACE_RETENTION: 'forever', MILLRACE_RETENTION_RUNS: 'forever' } });
    file = join(product.taskFolder, 'go-on');
    await product.call('PUT /api/projects', { body: { name: 'shop' } });
    jobs.pipeline = (await product.call('PUT /api/jobs', { body: JSON.stringify(pipeline(file)) })).id;
    jobs.long = (await product.call('PUT /api/jobs', { body: JSON.stringify(long) })).id;
    jobs.idle = (await product.call('PUT /api/jobs', { body: JSON.stringify(idle) })).id;
    await writeInstants(product, jobs.long);
    browser = await startBrowser();
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    page = await context.newPage();
    page.setDefaultTimeout(12_000);
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    await page.request.post(`${product.url}/api/session`, {
      data: { key: product.rootKey },
      headers: { origin: product.url },
    });
  });
  afterAll(async () => {
    await browser.close();
    await product.stop();
    await removeHome(product.home);
  });

  const open = (job: string, rest = ''): Promise<unknown> => page.goto(`${product.url}/jobs/${job}${rest}`);
  const node = (name: string, word: string) => page.getByRole('button', { name: `${name}, ${word}`, exact: true });

  it('the graph changes colours as runs begin and end', async () => {
    await open(jobs.pipeline);
    await node('wait', 'not begun').waitFor();
    await product.call('POST /api/jobs/{id}/run', { params: { id: jobs.pipeline }, body: {} });
    await node('wait', 'running').waitFor();
    await writeFile(file, '');
    await node('wait', 'success').waitFor();
    await node('check', 'failure').waitFor();
    await node('tell', 'success').waitFor();
    await node('load', 'not begun').waitFor();
    expect(await page.getByRole('list', { name: 'Kinds of edges' }).innerText()).toContain('after failure');
  });

  it('the keyboard opens a token beside the graph, with its explanation and runs, and Escape closes it', async () => {
    await node('wait', 'success').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    const panel = page.getByRole('complementary', { name: 'check' });
    await panel
      .getByText(/exit code 3/)
      .first()
      .waitFor();
    await panel.getByRole('link', { name: 'Attempt 1' }).waitFor();
    await panel.getByRole('button', { name: 'Run task' }).waitFor();
    expect(new URL(page.url()).searchParams.has('task')).toBe(true);
    expect(await seriousFaults(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await panel.waitFor({ state: 'detached' });
    expect(await node('check', 'failure').evaluate((element) => element.matches(':focus'))).toBe(true);
  });

  it('a job that never ran shows what a task waits for, names other jobs, and offers to run it', async () => {
    await open(jobs.idle);
    await page.getByRole('link', { name: 'tidy, shop/long', exact: true }).waitFor();
    await node('sum up', 'not begun').click();
    const panel = page.getByRole('complementary', { name: 'sum up' });
    await panel.getByText('No instant of its job has begun yet.').waitFor();
    expect(await panel.getByRole('listitem').allInnerTexts()).toEqual(
      expect.arrayContaining(['yearly to fire', 'tidy of shop/long to succeed']),
    );
    await panel.getByRole('button', { name: 'Run now' }).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
  });

  it('the page shows why states cannot be read, and does not call tasks “not begun” then', async () => {
    // its own page: a refusal is a fault on the console
    const other = await page.context().newPage();
    await other.goto(`${product.url}/jobs/${jobs.pipeline}?instant=yesterday`);
    await other.getByRole('alert').waitFor();
    expect(await other.getByRole('button', { name: 'wait, task', exact: true }).count()).toBe(1);
    expect(await other.getByText('not begun').count()).toBe(0);
    await other.close();
  });

  it('the timeline shows the runs of an instant, each a link to its page', async () => {
    await open(jobs.pipeline, '/timeline');
    const bar = page.getByRole('link', { name: /^check, failure, .*critical path$/ });
    await bar.waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await bar.click();
    await page.getByRole('heading', { name: 'check' }).waitFor();
  });

  it('the durations view shows how long tasks take, for one task or all', async () => {
    await open(jobs.long, '/durations');
    await page.getByRole('button', { name: 'join' }).click();
    await page.getByText('join, by instant').waitFor();
    expect(await page.locator('.duration-bar').count()).toBe(30);
    expect(await page.getByRole('row', { name: /^join/ }).innerText()).toContain('2.0s');
    expect(await seriousFaults(page)).toEqual([]);
  });

  it('the keyboard moves through the grid and opens a cell', async () => {
    await open(jobs.long, '/grid');
    await page.getByRole('gridcell', { name: `extract, ${shown(newest)}, success` }).focus();
    for (const key of ['PageDown', 'ArrowDown', 'End', 'ArrowLeft', 'Enter']) await page.keyboard.press(key);
    const panel = page.getByRole('complementary', { name: 'send' });
    await panel.getByRole('link', { name: 'Attempt 1' }).waitFor();
    const instant = new URL(page.url()).searchParams.get('instant') ?? '';
    expect(await page.locator(':focus').getAttribute('aria-label')).toContain(`send, ${shown(instant)}`);
    expect(Date.parse(instant)).toBeLessThan(Date.parse(newest) - 10 * 60_000);
    expect(await seriousFaults(page)).toEqual([]);
  });

  it('the grid scrolls through ten thousand instants with short frames and a small page, then rests', async () => {
    await open(jobs.long, '/grid');
    await page.getByRole('gridcell').first().waitFor();
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
    const before = await busyMs(cdp);
    const { frames, elements } = await page.getByRole('grid').evaluate(slide, instants);
    // the page's own processor time per frame, independent of other load on the machine
    expect(((await busyMs(cdp)) - before) / frames).toBeLessThan(80);
    expect(elements).toBeLessThan(2_500);
    await page.getByRole('rowheader', { name: `${shown(oldest)}, failure` }).waitFor();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    // never, if it went on asking; a new minute, and what was under way, are over by then
    await until('it asks for nothing', async () => {
      asked.length = 0;
      await page.waitForTimeout(600);
      return asked.length === 0 || undefined;
    });
  }, 60_000);

  it('the grid jumps to a time, and continues to newer and older instants', async () => {
    await open(jobs.long, '/grid?at=2026-01-03T12:00');
    const row = (at: string) => page.getByRole('rowheader', { name: new RegExp(`^${shown(at)}`) });
    await row('2026-01-03T12:00:00Z').waitFor();
    const grid = page.getByRole('grid');
    await until('newer rows are above', async () => (await grid.evaluate((box) => box.scrollTop)) > 0 || undefined);
    await row('2026-01-03T12:00:00Z').waitFor();
    await grid.evaluate((box) => box.scrollBy(0, -260));
    await row('2026-01-03T12:09:00Z').waitFor();
    await page.getByRole('button', { name: 'Oldest' }).click();
    await row(oldest).waitFor();
    await page.getByRole('button', { name: 'Newest' }).click();
    await row(newest).waitFor();
    await grid.evaluate((box) => box.scrollBy(0, 3_000));
    await row(newest).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Newest' }).click();
    await row(newest).waitFor();
    await until('the first row is at the top', async () => (await grid.evaluate((box) => box.scrollTop)) === 0);
  });

  it('the pages log no errors on the console', () => expect(faults).toEqual([]));
});

/** As the page writes an instant. */
function shown(instant: string): string {
  return `${instant.slice(0, 10)} ${instant.slice(11, 16)}Z`;
}

async function busyMs(cdp: CDPSession): Promise<number> {
  const { metrics } = await cdp.send('Performance.getMetrics');
  return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000;
}

/** The browser's globals that `slide` uses; the compiler only knows those of Node. */
interface InPage {
  readonly ownerDocument: { querySelectorAll(selector: string): { readonly length: number } };
  scrollTop: number;
  readonly clientHeight: number;
  readonly scrollHeight: number;
  getAttribute(name: string): string | null;
}

/** In the page: a screen or so further with each frame, until the last row; how many frames, and the most elements. */
async function slide(grid: InPage, rows: number): Promise<{ frames: number; elements: number }> {
  const { requestAnimationFrame } = globalThis as unknown as {
    requestAnimationFrame: (done: () => void) => void;
  };
  const isDone = (): boolean =>
    grid.getAttribute('aria-rowcount') === String(rows + 1) &&
    grid.scrollTop + grid.clientHeight >= grid.scrollHeight - 1;
  let [frames, elements] = [0, 0];
  while (!isDone()) {
    grid.scrollTop += 900;
    await new Promise<void>((done) => requestAnimationFrame(done));
    frames++;
    if (frames % 20 === 0) elements = Math.max(elements, grid.ownerDocument.querySelectorAll('*').length);
  }
  return { frames, elements };
}
