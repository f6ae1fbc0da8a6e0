/**
 * A picture of every page, at the width of a desk and of a phone, by day and by night; each is checked for faults on the
 * console and for what axe finds serious. Look at them.
 */
import { copyFile, mkdir, rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seriousFaults } from '../harness/axe.ts';
import { startBrowser } from '../harness/browser.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { busEnvironment, seedBus, type SeededBus } from '../harness/realistic/bus.ts';
import { flowArgs, type SeededFlows, seedFlows } from '../harness/realistic/flows.ts';
import { seed, type Seeded } from '../harness/realistic/seed.ts';

const folder = fileURLToPath(new URL('../../screenshots', import.meta.url));
/** Those that the README shows are kept with it. */
const kept = fileURLToPath(new URL('../../docs/screenshots', import.meta.url));
const best = new Set([
  'home',
  'graph',
  'grid',
  'run-failed-dark',
  'definition',
  'timeline-dark',
  'execution-step',
  'execution-timeline-dark',
]);

type Everything = Seeded & { readonly bus: SeededBus; readonly flows: SeededFlows };

interface Shot {
  readonly name: string;
  readonly path: (seeded: Everything) => string;
  /** A person would wait for this. */
  readonly shows: string | RegExp;
  readonly act?: (page: Page) => Promise<void>;
}

const job =
  (name: string, rest = '') =>
  (seeded: Seeded) =>
    `/jobs/${seeded.jobs.get(name)}${rest}`;

const subscriber =
  (service: string, view = '') =>
  ({ bus }: { readonly bus: SeededBus }) =>
    `/subscribers/${bus.names.get(service)}${view === '' ? '' : `?view=${view}`}`;

const order =
  (rest = '') =>
  ({ flows }: { readonly flows: SeededFlows }) =>
    `/executions/${flows.order}${rest}`;

const shots: readonly Shot[] = [
  { name: 'home', path: () => '/', shows: 'Health' },
  { name: 'jobs', path: () => '/jobs', shows: 'nightly report' },
  { name: 'jobs-failing', path: () => '/jobs?show=failing', shows: 'price feed' },
  { name: 'graph', path: job('warehouse/ingest'), shows: 'load orders' },
  { name: 'graph-large', path: job('warehouse/marts'), shows: 'release' },
  { name: 'graph-report', path: job('shop/nightly report'), shows: 'join' },
  { name: 'grid', path: job('warehouse/ingest', '/grid'), shows: /extract orders/ },
  { name: 'grid-narrow', path: job('billing/payments', '/grid'), shows: 'fetch' },
  { name: 'timeline', path: job('warehouse/marts', '/timeline'), shows: 'release' },
  { name: 'durations', path: job('shop/nightly report', '/durations'), shows: 'join' },
  { name: 'job-runs', path: job('shop/nightly report', '/runs'), shows: 'export orders' },
  { name: 'triggers', path: job('shop/nightly report', '/triggers'), shows: 'at two' },
  { name: 'backfills', path: job('warehouse/ingest', '/backfills'), shows: 'new source' },
  { name: 'versions', path: job('shop/nightly report', '/versions'), shows: 'anna' },
  { name: 'definition', path: job('shop/nightly report', '/definition'), shows: 'export orders' },
  { name: 'new-job', path: () => '/jobs/new', shows: 'New job' },
  {
    name: 'run-now',
    path: job('shop/nightly report'),
    shows: 'join',
    act: (page) => page.getByRole('button', { name: /^Run now/ }).click(),
  },
  {
    name: 'backfill',
    path: job('shop/stock sync'),
    shows: 'reconcile',
    act: (page) => page.getByRole('button', { name: /^Backfill/ }).click(),
  },
  { name: 'run-failed', path: ({ failed }) => `/runs/${failed}`, shows: 'price is not a number' },
  { name: 'run-why', path: ({ waiting }) => `/runs/${waiting}?view=why`, shows: /gpu/ },
  { name: 'run-history', path: ({ failed }) => `/runs/${failed}?view=history`, shows: /queued/i },
  { name: 'run-environment', path: ({ failed }) => `/runs/${failed}?view=environment`, shows: /parsing/ },
  { name: 'runs', path: () => '/runs', shows: /extract|load/ },
  { name: 'run-attempts', path: ({ failed }) => `/runs/${failed}?view=attempts`, shows: /failure/ },
  { name: 'projects', path: () => '/projects', shows: 'warehouse' },
  { name: 'project', path: ({ projects }) => `/projects/${projects.get('warehouse')}`, shows: 'marts' },
  { name: 'worker', path: ({ worker }) => `/workers/${worker}`, shows: /success|running/ },
  { name: 'sign-in', path: () => '/signin', shows: /key/i },
  {
    name: 'help',
    path: () => '/',
    shows: 'Health',
    act: (page) => page.keyboard.press('?'),
  },
  { name: 'workers', path: () => '/workers', shows: 'attic' },
  { name: 'schedulers', path: () => '/schedulers', shows: /up/ },
  { name: 'audit', path: () => '/audit', shows: 'flow applied' },
  { name: 'keys', path: () => '/keys', shows: 'wall display' },
  { name: 'tenants', path: () => '/tenants', shows: /stopped by key:/ },
  { name: 'tenant', path: () => '/tenants/acme', shows: /^runs$/ },
  { name: 'tenant-stopped', path: () => '/t/billing/jobs', shows: /Meanwhile nothing fires/ },
  { name: 'slots', path: () => '/slots', shows: 'Held' },
  { name: 'engines', path: () => '/engines', shows: 'this release' },
  { name: 'launcher', path: () => '/launcher', shows: /pid/ },
  {
    name: 'switcher',
    path: () => '/',
    shows: 'Health',
    act: async (page) => {
      await page.getByRole('button', { name: /^Tenant/ }).click();
      await page.getByRole('link', { name: 'acme' }).waitFor();
    },
  },
  { name: 'settings', path: () => '/settings', shows: 'lake' },
  { name: 'topics', path: () => '/topics', shows: 'shipments' },
  { name: 'subscribers', path: () => '/subscribers', shows: /^warehouse--/ },
  { name: 'dead-letters', path: () => '/dead-letters', shows: '422' },
  { name: 'dead-letter', path: ({ bus }) => `/dead-letters?letter=${bus.deadLetter}`, shows: /Last answer/ },
  { name: 'errands', path: () => '/errands', shows: 'deliver' },
  { name: 'subscriber-failing', path: subscriber('warehouse'), shows: '503' },
  { name: 'subscriber-disabled', path: subscriber('legacy'), shows: /410 Gone/ },
  { name: 'subscriber-hanging', path: subscriber('search', 'queue'), shows: 'in flight' },
  { name: 'subscriber-strands', path: subscriber('reports', 'queue'), shows: /by key:reports/ },
  { name: 'subscriber-pull', path: subscriber('ledger'), shows: 'No consumer has fetched the batch.' },
  { name: 'subscriber-letters', path: subscriber('crm', 'dead-letters'), shows: '422' },
  { name: 'subscriber-replays', path: subscriber('billing', 'replays'), shows: 'done' },
  { name: 'subscriber-lag', path: subscriber('warehouse', 'rates'), shows: 'Events waiting' },
  { name: 'subscriber-rates', path: subscriber('billing', 'rates'), shows: 'Events delivered per minute' },
  { name: 'subscriber-settings', path: subscriber('billing', 'settings'), shows: 'Filter' },
  {
    name: 'subscriber-change',
    path: subscriber('billing', 'settings'),
    shows: 'Filter',
    act: (page) => page.getByRole('button', { name: 'Change' }).click(),
  },
  {
    name: 'delivery',
    path: subscriber('warehouse'),
    shows: '503',
    act: async (page) => {
      await page.getByRole('button', { name: /_0_/ }).first().click();
      await page.getByText(/^503 after/).waitFor();
    },
  },
  { name: 'flows', path: () => '/flows', shows: 'A manager decides; after a week the finance leads are asked' },
  { name: 'flow', path: () => '/flows/quick', shows: 'batch-7-0' },
  { name: 'flow-steps', path: () => '/flows/order/steps', shows: 'reserve-stock' },
  { name: 'flow-versions', path: () => '/flows/order/versions', shows: /lines added/ },
  { name: 'flow-definition', path: () => '/flows/order/definition', shows: 'reserve-stock' },
  { name: 'new-flow', path: () => '/flows/new', shows: 'New flow' },
  { name: 'executions', path: () => '/executions', shows: 'order-4711' },
  { name: 'execution', path: order(), shows: 'reserve-stock' },
  { name: 'execution-history', path: order('?view=history'), shows: 'Launched' },
  { name: 'execution-timeline', path: order('?view=timeline'), shows: 'invoice' },
  { name: 'execution-data', path: order('?view=data'), shows: /Fisher/ },
  { name: 'execution-why', path: order('?view=why'), shows: /mailbox full/ },
  { name: 'execution-past', path: order('?rev=3'), shows: /revision 3/i },
  {
    name: 'execution-step',
    path: order(),
    shows: 'reserve-stock',
    act: async (page) => {
      await page.getByRole('treeitem', { name: /invoice/ }).click();
      await page
        .getByText(/mailbox full/)
        .first()
        .waitFor();
    },
  },
  { name: 'execution-paused', path: ({ flows }) => `/executions/${flows.paused}`, shows: /paused/ },
  { name: 'workitems', path: () => '/workitems', shows: 'Expense e0 of eve' },
  { name: 'answer', path: ({ flows }) => new URL(flows.link).pathname, shows: 'Expense e0 of eve' },
  {
    name: 'search',
    path: () => '/',
    shows: 'Health',
    act: async (page) => {
      await page.keyboard.press('/');
      await page.keyboard.type('ext');
      await page.getByText('extract orders').waitFor();
    },
  },
];

/** What reaches beyond the screen, where the page itself would have to be scrolled sideways. */
const tooWide = `document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
    .slice(0, 5).map((e) => e.tagName + '.' + e.getAttribute('class'))`;

const looks = [
  { name: '', viewport: { width: 1280, height: 800 }, colorScheme: 'light' },
  { name: '-dark', viewport: { width: 1280, height: 800 }, colorScheme: 'dark' },
  { name: '-phone', viewport: { width: 390, height: 844 }, colorScheme: 'light' },
] as const;

let product: Product;
let browser: Browser;
let seeded: Everything;

beforeAll(async () => {
  product = await startProduct({ env: busEnvironment, args: flowArgs });
  seeded = { ...(await seed(product)), bus: await seedBus(product), flows: await seedFlows(product) };
  for (const name of ['acme', 'billing']) await product.call('POST /api/tenants', { body: { name } });
  await product.call('POST /api/tenants/{name}/stop', { params: { name: 'billing' } });
  browser = await startBrowser();
  await rm(folder, { recursive: true, force: true });
  for (const each of [folder, kept]) await mkdir(each, { recursive: true });
});
afterAll(async () => {
  await browser.close();
  await seeded.bus.close();
  await product.stop();
  await removeHome(product.home);
});

async function signedIn(look: (typeof looks)[number]): Promise<BrowserContext> {
  const context = await browser.newContext({ viewport: look.viewport, colorScheme: look.colorScheme });
  const answer = await context.request.post(`${product.url}/api/session`, {
    data: { key: product.rootKey },
    headers: { origin: product.url },
  });
  expect(answer.status()).toBe(201);
  return context;
}

describe.each(looks.map((look) => [`pictures${look.name}`, look] as const))('%s', (_, look) => {
  let context: BrowserContext;
  beforeAll(async () => {
    context = await signedIn(look);
  });
  afterAll(() => context.close());

  it.each(shots.map((shot) => [shot.name, shot] as const))('%s', async (_, shot) => {
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    try {
      await page.goto(product.url + shot.path(seeded));
      await page.getByText(shot.shows).locator('visible=true').first().waitFor({ timeout: 10_000 });
      await shot.act?.(page);
      // charts and graphs lay themselves out after their data has come
      await page.waitForTimeout(400);
      const name = shot.name + look.name;
      await page.screenshot({ path: `${folder}/${name}.png` });
      if (best.has(name)) await copyFile(`${folder}/${name}.png`, `${kept}/${name}.png`);
      expect(await page.evaluate(tooWide)).toEqual([]);
      expect([...faults, ...(await seriousFaults(page))]).toEqual([]);
    } finally {
      await page.close();
    }
  });
});
