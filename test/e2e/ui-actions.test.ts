/**
 * Actions on a job in a real Chromium: pause, run with params, rerun what failed, backfill, edit. A viewer is offered none of
 * them.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeClient } from '../../src/http/client.ts';
import { seriousFaults } from '../harness/axe.ts';
import { startBrowser } from '../harness/browser.ts';
import { type Endpoints, type Product, removeHome, startProduct } from '../harness/product.ts';
import { refusal } from '../harness/expected.ts';
import { needs } from '../harness/services.ts';
import { until } from '../harness/until.ts';

const document = (flag: string) => ({
  project: 'shop',
  name: 'report',
  params: { region: 'north', days: 3 },
  triggers: [
    { name: 'hourly', start: '2026-01-01T00:00:00Z', period: '1h', catchup: 'none', end: '2026-02-01T00:00:00Z' },
  ],
  tasks: [
    {
      name: 'export',
      depends: ['trigger/hourly'],
      process: { command: ['echo', 'region {{params.region}}, days {{params.days}}'] },
    },
    { name: 'check', process: { command: ['test', '-e', flag] } },
  ],
});

const missed = {
  project: 'shop',
  name: 'late',
  paused: true,
  triggers: [{ name: 'daily', start: '2026-01-01T00:00:00Z', period: '1d', end: '2026-01-04T00:00:00Z' }],
  tasks: [{ name: 'one', depends: ['trigger/daily'] }],
};

describe.skipIf(!needs('chromium'))('actions in the web interface', () => {
  let product: Product;
  let browser: Browser;
  let page: Page;
  let job: string;
  let flag: string;
  const faults: string[] = [];

  async function open(key: string): Promise<Page> {
    const context = await browser.newContext();
    const opened = await context.newPage();
    opened.on('pageerror', (error) => faults.push(error.message));
    opened.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    await opened.goto(`${product.url}/signin`);
    await opened.evaluate(async (given) => {
      const headers = { 'content-type': 'application/json' };
      await fetch('/api/session', { method: 'POST', headers, body: JSON.stringify({ key: given }) });
    }, key);
    return opened;
  }

  beforeAll(async () => {
    product = await startProduct();
    flag = join(product.taskFolder, 'flag');
    await product.call('PUT /api/projects', { body: { name: 'shop' } });
    ({ id: job } = await product.call('PUT /api/jobs', { body: JSON.stringify(document(flag)) }));
    browser = await startBrowser();
    page = await open(product.rootKey);
    await page.goto(`${product.url}/jobs/${job}/triggers`);
  });
  afterAll(async () => {
    await browser.close();
    await product.stop();
    await removeHome(product.home);
  });

  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const dialog = () => page.getByRole('dialog');
  const stored = () => product.call('GET /api/jobs/{id}', { params: { id: job } });

  it('one click pauses and unpauses a job; a paused job cannot be run, and the page says so', async () => {
    await button('Pause report').click();
    await button('Unpause report').waitFor();
    expect((await stored()).paused).toBe(true);
    await button('Run now').click();
    await dialog().getByText('Unpause it to run it').waitFor();
    expect(await dialog().getByRole('button', { name: 'Run now' }).isDisabled()).toBe(true);
    await page.keyboard.press('Escape');
    expect(await page.locator(':focus').textContent()).toBe('Run now');
    await button('Unpause report').click();
    await button('Pause report').waitFor();
    expect((await stored()).paused).toBe(false);
  });

  it('unpausing first shows what will be caught up', async () => {
    const { id } = await product.call('PUT /api/jobs', { body: JSON.stringify(missed) });
    await page.goto(`${product.url}/jobs/${id}/triggers`);
    await button('Unpause late').click();
    await dialog().getByText('catches up 3 instants').waitFor();
    expect(await product.call('GET /api/jobs/{id}/paused', { params: { id } })).toBe(true);
    await dialog().getByRole('button', { name: 'Unpause' }).click();
    await button('Pause late').waitFor();
    await page.goto(`${product.url}/jobs/${job}/triggers`);
  });

  it('a job can be run with params by the keyboard alone, and the page leads to the instant', async () => {
    await button('Run now').focus();
    await page.keyboard.press('Enter');
    await dialog().getByText('These 2 tasks start at once').waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await dialog().getByRole('textbox', { name: 'region' }).press('Control+a');
    await page.keyboard.type('south');
    await dialog().getByRole('textbox', { name: 'days' }).fill('seven');
    await dialog().getByText('Not valid JSON').waitFor();
    await dialog().getByRole('textbox', { name: 'days' }).fill('7');
    await page.keyboard.press('Enter');
    await dialog().getByRole('link', { name: 'See it in the graph' }).click();
    await page.waitForURL(/instant=/);
    const said = await until('it has printed its params', async () => {
      const { items } = await product.call('GET /api/runs', { query: { job, state: 'success' } });
      const run = items.find(({ task }) => task?.name === 'export');
      return run && product.call('GET /api/runs/{id}/logs', { params: { id: run.id } });
    });
    expect(said).toContain('region south, days 7');
  });

  it('a rerun starts only what failed', async () => {
    const states = async () => {
      const [newest] = (await product.call('GET /api/jobs/{id}/instants', { params: { id: job } })).items;
      return newest?.tasks;
    };
    await until('the check has failed', async () => (await states())?.failure === 1 || undefined);
    await writeFile(flag, '');
    await button('Re-run failed').click();
    await dialog().getByText('1 task runs again').waitFor();
    expect(await dialog().getByRole('list', { name: 'Tokens' }).innerText()).toMatch(/check\s+.*\s+failure/);
    await dialog().getByRole('button', { name: 'Run them again' }).click();
    await dialog().getByText('1 task runs again.').waitFor();
    await page.keyboard.press('Escape');
    await until('all went well', async () => (await states())?.success === 2 || undefined);
  });

  it('a backfill first shows its number of instants, then its progress', async () => {
    await button('Backfill').click();
    await dialog().getByText('No instant of these triggers lies in that range').waitFor();
    await dialog().getByRole('textbox', { name: 'First instant' }).fill('2026-01-01');
    await dialog().getByRole('textbox', { name: 'Last instant' }).fill('2026-01-02 00:00');
    await dialog().getByText('25 instants fire').waitFor();
    await dialog().getByRole('textbox', { name: 'Name' }).fill('again');
    await button('Start backfill').click();
    await dialog().getByText('Done: 25 of 25 instants fired').waitFor();
    expect(await dialog().getByRole('progressbar', { name: 'Instants fired' }).getAttribute('aria-valuenow')).toBe(
      '25',
    );
    await dialog().getByRole('link', { name: 'All backfills' }).click();
    await page.getByRole('button', { name: /^again done/, expanded: true }).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
  });

  it('the editor shows a fault at its line while the user types, and saves a valid document', async () => {
    await page.goto(`${product.url}/jobs/${job}/definition`);
    const editor = page.getByRole('textbox', { name: 'Job document' });
    await page.getByText('No changes').waitFor();
    await editor.press('Control+End');
    await page.keyboard.type('  - name: send\ndepends: [task/none]');
    const lines = (await editor.innerText()).split('\n').length;
    await page.getByRole('button', { name: `Line ${lines}` }).waitFor();
    await page.getByText('names the task "none"').first().waitFor();
    await page.locator('.cm-lint-marker-error').waitFor();
    expect(await button('Save').isDisabled()).toBe(true);
    expect(await seriousFaults(page)).toEqual([]);
    for (let i = 0; i < 'none]'.length; i++) await page.keyboard.press('Backspace');
    await page.keyboard.type('check]');
    await page.getByText('1 change, as version 2').waitFor();
    // switching to another view loses nothing
    await page.getByRole('link', { name: 'Versions', exact: true }).click();
    await page.getByRole('link', { name: 'Definition' }).click();
    await page.getByText('1 change, as version 2').waitFor();
    await button('Save').click();
    await page.getByRole('link', { name: 'version 2' }).click();
    await page.getByText('2 lines added, 0 removed').waitFor();
    expect(JSON.parse((await stored()).raw_definition)).toMatchObject({ tasks: [{}, {}, { depends: ['task/check'] }] });
    expect(await seriousFaults(page)).toEqual([]);
  });

  it('an old version can be restored as a draft', async () => {
    await page.goto(`${product.url}/jobs/${job}/versions?from=2&to=1`);
    await page.getByRole('link', { name: 'Restore version 1' }).click();
    await page.getByText('1 change, as version 3').waitFor();
    await button('Discard changes').click();
    await page.getByText('No changes').waitFor();
    await page.goto(`${product.url}/jobs/${job}/definition?restore=99`);
    await page.getByText('Nothing was restored: the job has no version 99.').waitFor();
    await page.goto(`${product.url}/jobs/${job}/definition?restore=old`);
    await page.getByText('Nothing was restored: the job has no version old.').waitFor();
  });

  it('a new job is created together with its project', async () => {
    await page.goto(`${product.url}/jobs/new`);
    await page.getByRole('combobox', { name: 'Project' }).fill('bakery');
    await button('Create project bakery').click();
    await page.getByText('A new job').waitFor();
    await button('Create job').click();
    await page.getByRole('heading', { name: 'my job' }).waitFor();
    const made = await product.call('GET /api/jobs', { query: { project: 'bakery', name: 'my job' } });
    expect(made).toMatchObject({ name: 'my job' });
  });

  it('the editor reports that projects cannot be read, and still checks the document', async () => {
    const other = await page.context().newPage();
    const json = { title: 'No', detail: 'projects are not to be seen' };
    await other.route(/\/api\/projects\?/, (route) => route.fulfill({ status: 403, json }));
    await other.goto(`${product.url}/jobs/new?project=shop`);
    await other.getByRole('alert').getByText('Projects are not to be seen').waitFor();
    await other.getByText('A new job').waitFor();
    await other.close();
  });

  it('a viewer is offered no actions, and the server refuses them', async () => {
    const { key } = await product.call('POST /api/keys', { body: { name: 'looker', role: 'viewer' } });
    const viewer = await open(key);
    await viewer.goto(`${product.url}/jobs/${job}/definition`);
    const text = viewer.getByLabel('Job document, read only');
    await text.waitFor();
    expect(await text.getAttribute('contenteditable')).toBe('false');
    expect(await viewer.getByRole('button', { name: /Run now|Pause|Backfill|Re-run|Save|Delete/ }).count()).toBe(0);
    const call = makeClient<Endpoints>({ base: product.url, headers: { authorization: `Bearer ${key}` } });
    const params = { id: job };
    await expect(call('POST /api/jobs/{id}/run', { params })).rejects.toEqual(refusal(403));
    await expect(call('PUT /api/jobs/{id}/paused', { params, body: { paused: true } })).rejects.toEqual(refusal(403));
    await expect(call('POST /api/jobs/check', { body: '{}' })).rejects.toEqual(refusal(403));
    expect((await stored()).paused).toBe(false);
    await viewer.context().close();
  });

  it('the sessions page lists sessions, and ends that of another browser', async () => {
    const { key } = await product.call('POST /api/keys', { body: { name: 'lost laptop', role: 'viewer' } });
    const lost = await open(key);
    await page.goto(`${product.url}/keys`);
    const sessions = page.getByRole('region', { name: 'Sessions' });
    const row = (name: string) => sessions.getByRole('row').filter({ hasText: name });
    await row('this browser').waitFor();
    expect(await row('this browser').getByRole('button').count()).toBe(0);
    expect(await seriousFaults(page)).toEqual([]);
    await row('lost laptop').getByRole('button', { name: 'End' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End session' }).click();
    await row('lost laptop').waitFor({ state: 'detached' });
    expect((await lost.request.get(`${product.url}/api/me`)).status()).toBe(401);
    await page.getByRole('row').filter({ hasText: 'installation' }).getByRole('button', { name: 'Replace…' }).click();
    await page.getByRole('dialog').getByText('MILLRACE_ROOT_KEY').waitFor();
    await page.keyboard.press('Escape');
    await lost.context().close();
  });

  it('the pages log no errors on the console', () => expect(faults).toEqual([]));
});
