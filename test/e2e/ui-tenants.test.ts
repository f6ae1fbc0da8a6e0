/**
 * Tenants in a real Chromium against the real server: created, switched to, stopped, started, out of slots, renamed and
 * dropped; and the view of a user whose key is bound to one tenant.
 */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeClient } from '../../src/http/client.ts';
import { seriousFaults } from '../harness/axe.ts';
import { startBrowser } from '../harness/browser.ts';
import { type Endpoints, type Product, removeHome, startProduct } from '../harness/product.ts';
import { needs } from '../harness/services.ts';
import { type SignedIn, signIn } from '../harness/signed-in.ts';
import { until } from '../harness/until.ts';

const document = { project: 'shop', name: 'report', tasks: [{ name: 'export' }] };

describe.skipIf(!needs('chromium'))('tenants in the web interface', () => {
  let product: Product;
  let browser: Browser;
  let root: SignedIn;
  let page: Page;

  beforeAll(async () => {
    product = await startProduct();
    browser = await startBrowser();
    root = await signIn(browser, product, product.rootKey);
    page = await root.open('/tenants');
  });
  afterAll(async () => {
    await browser.close();
    await product.stop();
    await removeHome(product.home);
  });

  const at = (path: string) => page.goto(product.url + path);
  /** Where the server refuses, which a browser takes for a fault. */
  const visit = () => root.context.newPage();
  const pathOf = (shown: Page) => new URL(shown.url()).pathname;
  const button = (name: string | RegExp) => page.getByRole('button', { name });
  const dialog = () => page.getByRole('dialog');
  const inState = (state: string) => page.getByRole('status').getByText(state, { exact: true }).waitFor();
  const stateOf = async (name: string) => (await product.call('GET /api/tenants/{name}', { params: { name } })).state;

  it('a new tenant is soon started, and the page leads to it', async () => {
    await button('New tenant').click();
    await dialog().getByRole('textbox', { name: 'Name' }).fill('Acme');
    await dialog().getByText('Lower-case letters').waitFor();
    expect(await dialog().getByRole('button', { name: 'Make tenant' }).isDisabled()).toBe(true);
    await dialog().getByRole('textbox', { name: 'Name' }).fill('acme');
    expect(await seriousFaults(page)).toEqual([]);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'acme' }).waitFor();
    await inState('runs');
    await page.getByRole('table').getByText('started', { exact: true }).first().waitFor();
    await page.getByRole('link', { name: 'Its jobs and runs' }).click();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    expect(pathOf(page)).toBe('/t/acme/');
    await page.waitForFunction("document.title === 'Home · acme · millrace'");
  });

  it('pages keep their tenant, and the keyboard switches it', async () => {
    const headers = { authorization: `Bearer ${product.rootKey}` };
    const acme = makeClient<Endpoints>({ base: `${product.url}/t/acme`, headers });
    await acme('PUT /api/projects', { body: { name: 'shop' } });
    await acme('PUT /api/jobs', { body: JSON.stringify(document) });
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await page.getByRole('link', { name: 'report' }).click();
    await page.getByRole('heading', { name: 'report' }).waitFor();
    expect(pathOf(page)).toMatch(/^\/t\/acme\/jobs\/./);
    await page.keyboard.press('t');
    await page.getByRole('link', { name: 'acme' }).and(page.locator(':focus')).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.keyboard.press('t');
    await page.getByRole('link', { name: 'default' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('No jobs yet').waitFor();
    expect(pathOf(page)).toBe('/jobs');
    await page.keyboard.press('/');
    await page.keyboard.type('acm');
    await page.getByRole('option', { name: /Switch to tenant acme/ }).click();
    await page.getByRole('link', { name: 'report' }).waitFor();
    expect(pathOf(page)).toBe('/t/acme/jobs');
  });

  it('every page of a stopped tenant says that nothing fires, also to users who cannot start it', async () => {
    const { key } = await product.call('POST /api/keys', { body: { name: 'wall', role: 'viewer', tenant: 'acme' } });
    const viewer = await signIn(browser, product, key);
    const wall = await viewer.open('/t/acme/jobs');
    await wall.getByText('Live', { exact: true }).waitFor();
    expect(await wall.getByRole('button', { name: /^Tenant/ }).count()).toBe(0);
    expect(await wall.getByRole('link', { name: 'Tenants' }).count()).toBe(0);

    await at('/tenants/acme');
    await button('Stop').click();
    await dialog().getByRole('button', { name: 'Stop' }).click();
    await inState('off');
    await wall.getByText('Meanwhile nothing fires').waitFor();
    expect(await wall.getByRole('button', { name: /^Start/ }).count()).toBe(0);
    expect(viewer.faults).toEqual([]);

    await at('/t/acme/jobs');
    await page.getByText('Meanwhile nothing fires').waitFor();
    await page.getByRole('link', { name: 'report' }).waitFor();
    await button('Start acme').click();
    for (const shown of [page, wall]) await shown.getByText('Meanwhile nothing fires').waitFor({ state: 'detached' });
    await until('it runs again', async () => (await stateOf('acme')) === 'STARTED' || undefined);
    await viewer.context.close();
  });

  it('an upgrade is offered if a newer engine is installed, but not to a pre-release by default', async () => {
    await at('/tenants/acme');
    const answered = page.waitForResponse((response) => response.url().endsWith('/api/engines'));
    await page.reload();
    await answered;
    await button('Restart').waitFor();
    expect(await button('Upgrade').count()).toBe(0);
    // as the server would list it
    await page.route('**/api/engines', async (route) => {
      const response = await route.fetch();
      const { items } = (await response.json()) as { items: { version: string }[] };
      const others = ['99.1.0-beta.1', '99.0.0'].map((version) => ({ ...items[0], version, running: false }));
      await route.fulfill({ response, json: { items: [...others, ...items], next: null } });
    });
    await page.route('**/api/tenants/acme/upgrade', async (route) => {
      const { to } = route.request().postDataJSON() as { to: string };
      const plan = { from: '0.1.0', to, migrations: ['0099_more.sql'], sessions: 1, dry_run: true, message: null };
      await route.fulfill({ json: plan });
    });
    await page.reload();
    await button('Upgrade').click();
    await dialog().getByText('From 0.1.0 to 99.0.0, by:').waitFor();
    expect(await dialog().getByRole('combobox', { name: 'Version' }).inputValue()).toBe('99.0.0');
    await dialog().getByText('0099_more.sql').waitFor();
    await page.keyboard.press('Escape');
    await page.unroute('**/api/tenants/acme/upgrade');
    await page.unroute('**/api/engines');
  });

  it('no page is wider than its window, however long the names, and state and reason stay visible', async () => {
    const name = 'a'.repeat(63);
    await product.call('POST /api/tenants', { body: { name } });
    await product.call('POST /api/keys', { body: { name: 'long', role: 'viewer', tenant: name } });
    const size = page.viewportSize() ?? { width: 1280, height: 720 };
    const shownOn = { '/tenants': name, '/slots': name, '/engines': name, '/launcher': /pid \d/, '/keys': name };
    const places = Object.entries({ ...shownOn, [`/tenants/${name}`]: 'Change it', [`/t/${name}/`]: 'Health' });
    for (const [path, text] of places) {
      await at(path);
      await page.locator('main').getByText(text).first().waitFor();
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 800 });
        const wide = await page.evaluate<unknown>('document.documentElement.scrollWidth');
        expect([path, wide]).toEqual([path, width]);
      }
    }
    await at('/tenants');
    await page.getByRole('link', { name }).waitFor();
    const why = await page.getByRole('columnheader', { name: 'Why' }).boundingBox();
    expect((why?.x ?? Infinity) + (why?.width ?? 0)).toBeLessThanOrEqual(390);
    await page.setViewportSize(size);
    await page.getByRole('cell', { name: 'millrace_default', exact: true }).waitFor();
  });

  it('a database without Millrace is only offered the installation, and says once that it has none', async () => {
    const name = 'a'.repeat(63);
    await at(`/tenants/${name}`);
    await button('Release').waitFor();
    // this server's databases are discovered: it stays listed
    await product.call('POST /api/tenants/{name}/release', { params: { name } });
    await button('Install').waitFor();
    expect(await button(/^(?:Restart|Stop|Start|Upgrade|Release)/).count()).toBe(0);
    await button('Drop').waitFor();
    await page.getByRole('cell', { name: 'not installed', exact: true }).waitFor();
    expect(await page.getByText('Next try').count()).toBe(0);
    await at('/tenants');
    await page.getByRole('cell', { name: 'not installed', exact: true }).waitFor();
    const visitor = await visit();
    // unanswered: what is known is shown all the same
    await visitor.route('**/api/overview', () => undefined);
    await visitor.goto(`${product.url}/t/${name}/`);
    await visitor.getByText(`Millrace is not installed in the database ${name}.`).waitFor();
    await visitor.getByText('Reading how things stand').waitFor({ state: 'detached' });
    await visitor.close();
    await product.call('DELETE /api/tenants/{name}', { params: { name } });
  });

  it('the page of an unknown tenant says so once', async () => {
    const visitor = await visit();
    await visitor.goto(`${product.url}/t/nosuch/`);
    await visitor.getByRole('alert').getByText('There is no tenant nosuch').waitFor();
    await visitor.getByRole('heading', { name: 'Home' }).waitFor({ state: 'detached' });
    expect(await visitor.getByRole('alert').count()).toBe(1);
    expect(await visitor.getByText(/^(?:Live|Connecting|Reconnecting)$/).count()).toBe(0);
    await visitor.close();
  });

  it('the slots page shows holders, the tenants that a lower limit stops, and those that wait', async () => {
    await at('/slots');
    const limitTo = async (count: number): Promise<void> => {
      await button('Change limit').click();
      await dialog().getByRole('textbox', { name: 'Slots' }).fill(String(count));
    };
    const save = async (): Promise<void> => {
      await dialog().getByRole('textbox', { name: 'Slots' }).press('Enter');
      await dialog().waitFor({ state: 'detached' });
    };
    await page.getByRole('link', { name: 'acme' }).first().waitFor();
    const { limit: before } = await product.call('GET /api/slots');
    // the launcher and one scheduler
    await limitTo(2);
    await dialog().getByText('Stops 1 scheduler, the newest: acme.').waitFor();
    expect(await dialog().getByRole('button', { name: 'Save' }).isDisabled()).toBe(true);
    await dialog().getByRole('checkbox', { name: 'Stop this scheduler' }).check();
    expect(await seriousFaults(page)).toEqual([]);
    await save();
    await page.getByRole('heading', { name: 'In line' }).waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    const home = await root.open('/');
    await home.getByRole('link', { name: 'One tenant does not run' }).waitFor();
    await home.close();
    await limitTo(before);
    await dialog().getByText('Starts 1 of those in line, in its order: acme.').waitFor();
    await save();
    await page.getByRole('heading', { name: 'In line' }).waitFor({ state: 'detached' });
  });

  it('the installation page shows engines, launcher and hosts', async () => {
    await at('/engines');
    await page.getByText('this release', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Launcher and hosts' }).click();
    await page
      .getByRole('table')
      .getByRole('rowheader', { name: /pid \d/ })
      .first()
      .waitFor();
  });

  it('a tenant can be renamed, and dropped once its name is typed', async () => {
    await at('/tenants/acme');
    await button('Rename').click();
    await dialog().getByRole('textbox', { name: 'Name' }).fill('store');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'store' }).waitFor();
    expect(pathOf(page)).toBe('/tenants/store');
    expect(root.faults).toEqual([]);
    await button('Drop').click();
    await dialog().getByRole('textbox').fill('acme');
    expect(await dialog().getByRole('button', { name: 'Drop' }).isDisabled()).toBe(true);
    await dialog().getByRole('textbox').fill('store');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Tenants', exact: true }).waitFor();
    await page.getByRole('link', { name: 'store' }).waitFor({ state: 'detached' });
    const { items } = await product.call('GET /api/tenants');
    expect(items.map(({ name }) => name)).toEqual(['default']);
  });
});
