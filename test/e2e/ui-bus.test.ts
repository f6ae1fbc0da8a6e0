/**
 * The pages of the event bus in a real Chromium, with a receiver that fails, hangs, refuses and recovers: what they show, that they are
 * live, that each view has an address, and what their actions do. A viewer sees the same and is offered no action.
 */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seriousFaults } from '../harness/axe.ts';
import { startBrowser } from '../harness/browser.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { busEnvironment, seedBus, type SeededBus } from '../harness/realistic/bus.ts';
import { needs } from '../harness/services.ts';
import { type SignedIn, signIn } from '../harness/signed-in.ts';
import { until } from '../harness/until.ts';

const patienceMs = 30_000;

describe.skipIf(!needs('chromium'))('the bus in the web interface', () => {
  let product: Product;
  let browser: Browser;
  let bus: SeededBus;
  let root: SignedIn;
  let page: Page;

  beforeAll(async () => {
    product = await startProduct({ env: busEnvironment });
    [bus, browser] = await Promise.all([seedBus(product), startBrowser()]);
    root = await signIn(browser, product, product.rootKey, { viewport: { width: 1280, height: 900 } });
    page = await root.open('/topics');
    page.setDefaultTimeout(patienceMs);
  });
  afterAll(async () => {
    await browser?.close();
    await bus?.close();
    await product?.stop();
    if (product !== undefined) await removeHome(product.home);
  });

  const nameOf = (service: string): string => bus.names.get(service) ?? '';
  const pathOf = (service: string, rest = ''): string => `/subscribers/${nameOf(service)}${rest}`;
  const open = (path: string): Promise<unknown> => page.goto(product.url + path);
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const dialog = () => page.getByRole('dialog');
  const act = (name: string) => dialog().getByRole('button', { name, exact: true }).click();
  const state = (word: string) => page.getByRole('status').getByText(word, { exact: true }).waitFor();
  const read = (service: string) => product.call('GET /bus/subscribers/{id}', { params: { id: nameOf(service) } });

  it('topics have an owner and a count, and a click on one shows its charts under an address of their own', async () => {
    await page.getByRole('row', { name: /^orders shop \S+ 401 6/ }).waitFor();
    await page.getByRole('row', { name: /^shipments depot/ }).waitFor();
    await button('orders').click();
    await button('Only orders: show all topics').waitFor();
    expect(new URL(page.url()).searchParams.get('topic')).toBe('orders');
    await page.getByText('Deliveries and lag are those of its subscribers').waitFor();
    await page.getByText('Age of the oldest event that waits').waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await page
      .getByRole('row', { name: /^orders/ })
      .getByRole('link', { name: '6' })
      .click();
    await page.getByRole('row', { name: /^billing/ }).waitFor();
    expect(await page.getByRole('row', { name: /^crm/ }).count()).toBe(0);
  });

  it('the list of subscribers shows the state of each, its reason and its exact lag', async () => {
    await open('/subscribers');
    const rows = [
      /^billing\S+ up to date .* 0 –/,
      /^warehouse\S+ failing the receiver answered 503 .* 400 /,
      /^legacy\S+ disabled the receiver answered 410 Gone .* 400 /,
      /^reports\S+ paused moves to the new host .* 400 /,
      /^ledger\S+ to be fetched .* 400 /,
    ];
    for (const name of rows) await page.getByRole('row', { name }).waitFor();
    await page.getByText('2,000 events wait').waitFor();
    await page.getByRole('figure').filter({ hasText: 'Events waiting' }).getByText('2,000 now').waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await button('Stopped').click();
    await page.getByRole('row', { name: /^billing/ }).waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.get('show')).toBe('stopped');
  });

  it.each(['deliveries', 'queue', 'dead-letters', 'replays', 'rates', 'settings'])(
    'the view %s of a subscriber opens by its address, and axe finds no fault',
    async (view) => {
      const shown: Record<string, RegExp> = {
        deliveries: /^\w{8}_0_\d+_\d+$/,
        queue: /^nothing to deliver$/,
        'dead-letters': /^No dead letters$/,
        replays: /^done$/,
        rates: /^Age of the oldest event that waits$/,
        settings: /^Signing secrets$/,
      };
      await open(pathOf('billing', `?view=${view}`));
      await page
        .getByText(shown[view] ?? '')
        .first()
        .waitFor();
      expect(await seriousFaults(page)).toEqual([]);
    },
  );

  it('the lag of a paused subscriber is a chart, whose values can be read with the keyboard', async () => {
    await open(pathOf('reports', '?view=rates'));
    const chart = page.getByRole('figure').filter({ hasText: 'Events waiting' });
    await chart.getByText('400 now').waitFor();
    await chart.getByRole('img').press('ArrowLeft');
    await chart
      .getByRole('status')
      .getByText(/· waiting 400$/)
      .waitFor();
    await page
      .getByRole('figure')
      .filter({ hasText: 'Age of the oldest' })
      .getByText(/^oldest$/)
      .waitFor();
    expect(await seriousFaults(page)).toEqual([]);
  });

  it('the queue says that a strand is paused, not that nothing is to be delivered', async () => {
    await open(pathOf('reports', '?view=queue'));
    await page.getByRole('row', { name: /^3 paused 100 / }).waitFor();
    expect(await page.getByText('nothing to deliver').count()).toBe(0);
  });

  it('the audit links to the page of a subscriber', async () => {
    await open('/audit');
    await page
      .getByRole('link', { name: nameOf('reports') })
      .first()
      .click();
    await page.getByRole('heading', { name: nameOf('reports') }).waitFor();
    expect(new URL(page.url()).pathname).toBe(pathOf('reports'));
  });

  it('a delivery has an address, and shows its request with the events and its answer', async () => {
    await open(pathOf('warehouse'));
    await page
      .getByRole('button', { name: /^\w{8}_0_/ })
      .first()
      .click();
    const check = async (): Promise<void> => {
      await dialog()
        .getByText(/^POST http:\S+\/warehouse\ncontent-type/)
        .waitFor();
      await dialog()
        .getByText(/"url":"https:\/\/shop\.example\/orders\/1000"/)
        .waitFor();
      await dialog()
        .getByText(/^503 after /)
        .waitFor();
    };
    await check();
    expect(await seriousFaults(page)).toEqual([]);
    await page.reload();
    await check();
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.has('delivery')).toBe(false);
  });

  it('a test delivery shows what the receiver answered', async () => {
    await open(pathOf('billing'));
    await button('Test').click();
    await act('Send');
    await dialog()
      .getByText(/^The receiver answered 204 after/)
      .waitFor();
    expect(await seriousFaults(page)).toEqual([]);
  });

  it('a new secret is shown once, and the older one can be ended', async () => {
    await open(pathOf('billing', '?view=settings'));
    await button('New secret').click();
    await act('Create secret');
    const secret = await dialog().locator('.new-secret code').innerText();
    expect(secret).toMatch(/^whsec_\S{20,}$/);
    await dialog().locator('footer').getByRole('button', { name: 'Close' }).click();
    await page.getByText('two: deliveries carry a signature of each').waitFor();
    expect(await page.content()).not.toContain(secret);
    await button('End the older secret').click();
    await act('End it');
    await page.getByRole('cell', { name: 'one', exact: true }).waitFor();
    expect((await read('billing')).secrets).toBe(1);
  });

  it('a filter with a fault is refused with its place, and a valid one is saved', async () => {
    await open(pathOf('billing', '?view=settings'));
    await button('Change').click();
    const filter = dialog().getByRole('textbox', { name: 'Filter' });
    await filter.fill('{"data.total": ');
    await dialog().getByText('Enter a JSON object.').waitFor();
    expect(await dialog().getByRole('button', { name: 'Save' }).isDisabled()).toBe(true);
    await filter.fill('{"data.total": {"$above": 20}}');
    await act('Save');
    await dialog()
      .getByRole('alert')
      .getByText(/\$above/)
      .waitFor();
    // the refusal, which the browser logs
    await until('the browser has logged it', () => root.faults.length > 0 || undefined);
    expect(root.faults.splice(0)).toEqual([expect.stringContaining('400')]);
    expect((await read('billing')).filter).toMatchObject({ type: ['create', 'update'] });
    expect(await seriousFaults(page)).toEqual([]);
    await filter.fill('{"data.total": {"$gte": 20}}');
    await act('Save');
    await dialog().waitFor({ state: 'detached' });
    await page.getByText('"$gte": 20').waitFor();
    expect((await read('billing')).filter).toEqual({ 'data.total': { $gte: 20 } });
  });

  it('a subscriber is paused with a reason, and resumed where the user says', async () => {
    await open(pathOf('billing'));
    await button('Pause').click();
    await dialog().getByRole('textbox', { name: 'Reason' }).fill('month end');
    await act('Pause');
    await state('paused');
    await page.getByText(/by key:root \(month end\)/).waitFor();
    await bus.shop.publish('orders', { type: 'update', url: 'https://shop.example/orders/1', data: { total: 99 } });
    await page.getByText(/^1 event waits/).waitFor();
    await button('Resume').click();
    const from = dialog().getByRole('textbox', { name: 'From' });
    await from.fill('yesterday');
    await dialog()
      .getByText(/Enter the number of an event, or a time/)
      .waitFor();
    expect(await dialog().getByRole('button', { name: 'Resume' }).isDisabled()).toBe(true);
    await from.fill('now');
    expect(await seriousFaults(page)).toEqual([]);
    await act('Resume');
    await state('up to date');
    expect((await read('billing')).events).toMatchObject({ queued: 0, sent: 395 });
  });

  it('a dead letter has an address, and is gone once the receiver accepts it', async () => {
    await open(`/dead-letters?letter=${bus.deadLetter}`);
    await dialog()
      .getByText(/Last answer: 422, after 1 attempt\./)
      .waitFor();
    await dialog()
      .getByText(/"url":"https:\/\/shop\.example\/orders\/1002"/)
      .waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'detached' });
    expect(new URL(page.url()).search).toBe('');
    bus.replies.delete('crm');
    await button('Deliver again').click();
    await act('Deliver again');
    await page.getByText('No dead letters').waitFor();
    expect((await read('crm')).dead_letters).toBe(0);
  });

  it('an errand that waits for a retry can be run at once, and open pages show that the receiver recovered', async () => {
    const attempts = (): number => bus.receiver.received.filter(({ path }) => path === '/warehouse').length;
    await open('/errands');
    const row = page.getByRole('row', { name: /^deliver warehouse/ });
    await row.waitFor();
    expect(await seriousFaults(page)).toEqual([]);
    const before = attempts();
    await row.getByRole('button', { name: 'Retry' }).click();
    await act('Retry');
    await dialog().waitFor({ state: 'detached' });
    await until('it was attempted', () => attempts() > before || undefined);

    await open(pathOf('warehouse'));
    await state('failing');
    bus.replies.delete('warehouse');
    await until('the courier has delivered all', async () => {
      const { items } = await product.call('GET /api/errands', { query: { queue: 'main' } });
      const keys = items.filter(({ subscriber }) => subscriber === nameOf('warehouse')).map(({ key }) => key);
      // without waiting for the next attempt, which may be a minute away
      if (keys.length > 0) await product.call('POST /api/errands/retry', { body: { queue: 'main', keys } });
      return (await read('warehouse')).events.queued === 0 || undefined;
    });
    await state('up to date');
  });

  it('a replay is started from the page, and its progress is shown', async () => {
    await open(pathOf('warehouse', '?view=replays'));
    await button('New replay').click();
    await dialog().getByRole('textbox', { name: 'From' }).fill('10');
    await dialog().getByRole('textbox', { name: 'To' }).fill('20');
    expect(await seriousFaults(page)).toEqual([]);
    await act('Start replay');
    await page.getByRole('row', { name: /^10 to 20 100 % .*done/ }).waitFor();
  });

  it('a viewer sees the pages, and reads why they offer no action', async () => {
    const { key } = await product.call('POST /api/keys', { body: { name: 'wall', role: 'viewer' } });
    const viewer = await signIn(browser, product, key);
    const wall = await viewer.open(pathOf('reports'));
    await wall.getByText('Your key may only read.').waitFor({ timeout: patienceMs });
    for (const path of [
      pathOf('reports', '?view=settings'),
      pathOf('crm', '?view=dead-letters'),
      '/dead-letters',
      '/errands',
      '/topics',
    ]) {
      await wall.goto(product.url + path);
      await wall.getByRole('heading', { level: 1 }).waitFor({ timeout: patienceMs });
      await wall.getByText('Your key may only read.').waitFor({ timeout: patienceMs });
      await wall
        .getByText(/^(Filter|No dead letters|main: .*|refunds)$/)
        .first()
        .waitFor({ timeout: patienceMs });
      expect(
        await wall.getByRole('button', { name: /Pause|Resume|Delete|Test|Change|secret|again|Retry/ }).count(),
      ).toBe(0);
    }
    expect(viewer.faults).toEqual([]);
    await viewer.context.close();
  });

  it('without a session the address of a page leads to it after signing in', async () => {
    const context = await browser.newContext();
    const visitor = await context.newPage();
    visitor.setDefaultTimeout(patienceMs);
    await visitor.goto(`${product.url}${pathOf('billing', '?view=queue')}`);
    await visitor.getByLabel(/key/i).fill(product.rootKey);
    await visitor.keyboard.press('Enter');
    await visitor.getByRole('heading', { name: nameOf('billing') }).waitFor();
    expect(new URL(visitor.url()).searchParams.get('view')).toBe('queue');
    await context.close();
  });

  it('the pages log no errors on the console', () => expect(root.faults).toEqual([]));
});
