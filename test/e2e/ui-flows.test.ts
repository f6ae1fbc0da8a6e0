/**
 * The pages of flows in a real Chromium, by a person's clicks: the tutorial's approval from its document to its repair, the order with an
 * incident, every action on an execution, the inbox, and the page behind a link. Open pages follow what happens elsewhere. axe looks at
 * each page by day and by night.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { faultsByDayAndNight } from '../harness/axe.ts';
import { startBrowser } from '../harness/browser.ts';
import { type Product, removeHome, startProduct } from '../harness/product.ts';
import { approval } from '../harness/realistic/approval.ts';
import { flowArgs, seedFlows, type SeededFlows } from '../harness/realistic/flows.ts';
import { needs } from '../harness/services.ts';
import { type SignedIn, signIn } from '../harness/signed-in.ts';
import { until } from '../harness/until.ts';

const patienceMs = 30_000;

describe.skipIf(!needs('chromium'))('flows in the web interface', () => {
  let product: Product;
  let browser: Browser;
  let seeded: SeededFlows;
  let root: SignedIn;
  let page: Page;
  /** The approval that the first tests start. */
  let approvalId = '';

  beforeAll(async () => {
    [product, browser] = await Promise.all([startProduct({ args: flowArgs }), startBrowser()]);
    seeded = await seedFlows(product);
    root = await signIn(browser, product, product.rootKey, { viewport: { width: 1280, height: 900 } });
    page = await root.open('/');
    page.setDefaultTimeout(patienceMs);
  });
  afterAll(async () => {
    await browser?.close();
    await product?.stop();
    if (product !== undefined) await removeHome(product.home);
  });

  const open = (path: string): Promise<unknown> => page.goto(product.url + path);
  const button = (name: string) => page.getByRole('button', { name, exact: true });
  const tab = (name: string) => page.getByRole('link', { name, exact: true }).click();
  const dialog = () => page.getByRole('dialog');
  const act = (name: string) => dialog().getByRole('button', { name, exact: true }).click();
  const closed = () => dialog().waitFor({ state: 'detached' });
  const step = (name: string | RegExp) => page.getByRole('treeitem', { name }).first();
  const status = (word: string) => page.getByRole('status').getByText(word, { exact: true }).waitFor();
  const read = (id: string) => product.call('GET /api/executions/{id}', { params: { id } });
  const param = (name: string): string | null => new URL(page.url()).searchParams.get(name);
  const start = async (flow: string, input: unknown): Promise<string> =>
    (await product.call('POST /api/executions', { body: { flow, input } })).id;

  const expectAccessible = async (of = page): Promise<void> => expect(await faultsByDayAndNight(of)).toEqual([]);

  it('the start page counts executions with incidents, and leads to the step that failed', async () => {
    await page.getByRole('link', { name: '1 incident' }).waitFor();
    const incidents = page.getByRole('region', { name: 'Incidents of flows' });
    await incidents.getByText('smtp_failed').waitFor();
    await expectAccessible();
    await incidents.getByRole('link', { name: 'order-4711' }).click();
    await page.getByRole('heading', { name: 'order-4711' }).waitFor();
    await step(/invoice/).waitFor();
    expect(await step(/invoice/).getAttribute('aria-selected')).toBe('true');
  });

  it('Flows in the navigation lists flows with their versions, and what is under way', async () => {
    await page.getByRole('navigation').getByRole('link', { name: 'Flows' }).first().click();
    await page.getByRole('row', { name: /^order Reserve, charge and ship.* 1 / }).waitFor();
    await page.getByRole('row', { name: /^expense A manager decides/ }).waitFor();
    await expectAccessible();
    await page.getByRole('searchbox', { name: 'Find a flow' }).fill('quick');
    await page.getByRole('row', { name: /^order/ }).waitFor({ state: 'detached' });
    expect(param('q')).toBe('quick');
  });

  it('a new flow is checked while it is written, and created', async () => {
    await open('/flows');
    await tab('New flow');
    const editor = page.getByRole('textbox', { name: 'Flow document' });
    await editor.fill(approval.replace('task: approve', 'tusk: approve'));
    await page.getByText('has no verb').first().waitFor();
    expect(await button('Create flow').isDisabled()).toBe(true);
    await editor.fill(approval);
    await page.getByText('No faults').waitFor();
    await expectAccessible();
    await button('Create flow').click();
    await page.getByRole('heading', { name: 'approval' }).waitFor();
    await page.getByText('No executions').first().waitFor();
    await expectAccessible();
  });

  it('a flow shows its steps, what it needs, its versions and their difference', async () => {
    await tab('Steps');
    await step(/approve/).waitFor();
    await page.getByText(/has to host the functions invoice, tell/).waitFor();
    await expectAccessible();
    await tab('Definition');
    const editor = page.getByRole('textbox', { name: 'Flow document' });
    await editor.waitFor();
    await editor.fill(approval.replace('A manager decides', 'A manager decides within a day'));
    await button('Save').click();
    await page.getByRole('link', { name: 'version 2' }).click();
    await page.getByText('1 line added, 1 removed').waitFor();
    await page.getByText('A manager decides within a day').first().waitFor();
    await expectAccessible();
    await button('Side by side').click();
    expect(param('layout')).toBe('side');
  });

  it('an execution is started with an input, which is checked, and its page opens', async () => {
    await button('Start').click();
    const input = dialog().getByRole('textbox', { name: 'Input, as JSON' });
    await input.fill('{"id": ');
    expect(await dialog().getByRole('button', { name: 'Start version 2' }).isDisabled()).toBe(true);
    await input.fill('{"id": "e17", "manager": "meg"}');
    await dialog().getByRole('textbox', { name: 'Key' }).fill('expense-17');
    await expectAccessible();
    await act('Start version 2');
    await dialog().getByText('The execution is started.').waitFor();
    await dialog().getByRole('link', { name: 'Watch it' }).click();
    await page.getByRole('heading', { name: 'expense-17' }).waitFor();
    await status('waiting');
    await step(/approve.*meg|approve.*somebody to answer/).waitFor();
    approvalId = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    await expectAccessible();
  });

  it('the inspector of a step has its state, its work item, its definition and its history', async () => {
    await step(/approve/).click();
    await page.getByRole('heading', { name: 'approve' }).waitFor();
    await page.getByText('steps[0]', { exact: true }).waitFor();
    await page.getByText(/^began$/).waitFor();
    expect(param('node')).toMatch(/^0_0-\d+$/);
    await expectAccessible();
    await page.getByRole('link', { name: 'Open the work item' }).click();
    await page.getByRole('heading', { name: 'Expense e17' }).waitFor();
  });

  it('a work item is claimed, released and answered by its form, and the page of its execution follows', async () => {
    const watcher = await root.open(`/executions/${approvalId}`);
    await watcher.getByRole('status').getByText('waiting').waitFor({ timeout: patienceMs });
    await button('Claim').click();
    await page.getByText(/^Claimed by key:root/).waitFor();
    await expectAccessible();
    await button('Release').click();
    await page.getByText('Nobody has claimed it.').waitFor();
    await button('Send answer').click();
    await page.getByText('Choose yes or no').waitFor();
    await page.getByRole('radio', { name: 'Yes' }).check();
    await page.getByRole('textbox', { name: /Comment/ }).fill('well spent');
    await button('Send answer').click();
    await page.getByText('Answered. The flow goes on.').waitFor();
    // the function invoice fails, which nothing handles: the other page says so by itself
    await watcher.getByRole('status').getByText('incident').waitFor({ timeout: patienceMs });
    await watcher.getByText('the mail server refuses the message').first().waitFor({ timeout: patienceMs });
    await watcher.close();
  });

  it('an incident says which step failed and why, and is repaired by skipping it with a result', async () => {
    await open(`/executions/${approvalId}`);
    const incidents = page.getByRole('region', { name: 'Incidents' });
    await incidents.getByText('smtp_failed').waitFor();
    await expectAccessible();
    await incidents.getByRole('link', { name: 'invoice' }).click();
    await page.getByRole('heading', { name: 'Input' }).waitFor();
    await page.getByText('"/nowhere"').first().waitFor();
    await incidents.getByRole('button', { name: 'Skip' }).click();
    const result = dialog().getByRole('textbox', { name: 'Result, as JSON' });
    await result.fill('{paid}');
    expect(await dialog().getByRole('button', { name: 'Skip', exact: true }).isDisabled()).toBe(true);
    await result.fill('{"paid": 17}');
    await expectAccessible();
    await act('Skip');
    await closed();
    await status('waiting');
    expect((await read(approvalId)).fields).toMatchObject({ payment: { paid: 17 } });
  });

  it('the history names who did what, compares two revisions, and shows the steps as they were', async () => {
    await tab('History');
    const row = page.getByRole('row', { name: /Operation.*by key:root/ });
    await row.waitFor();
    await expectAccessible();
    await row.getByRole('link', { name: 'Diff' }).click();
    const comparison = page.getByRole('region', { name: 'Comparison of two revisions' });
    await comparison.getByText('paid: 17').first().waitFor();
    await expectAccessible();
    await comparison.getByRole('link', { name: 'Close the comparison' }).click();
    await page.getByRole('link', { name: '1', exact: true }).click();
    await page.getByText(/^As at revision 1 of \d+$/).waitFor();
    await step(/approve.*somebody to answer/).waitFor();
    await expectAccessible();
    await tab('Back to now');
    await step(/wait.*signal booked/).waitFor();
  });

  it.each([
    ['timeline', /running/],
    ['data', /"paid": 17|paid/],
    ['why', /waits for the signal booked/],
  ])('the view %s opens by its address', async (view, shows) => {
    await open(`/executions/${approvalId}?view=${view}`);
    await page.getByText(shows).first().waitFor();
    await expectAccessible();
  });

  it('a paused execution keeps a signal until it is resumed', async () => {
    await open(`/executions/${approvalId}`);
    await button('Pause').click();
    await act('Pause');
    await status('paused');
    await button('Signal').click();
    expect(await dialog().getByRole('combobox', { name: 'Signal' }).inputValue()).toBe('booked');
    await dialog().getByRole('textbox', { name: 'Payload, as JSON' }).fill('{"entry": 4}');
    await expectAccessible();
    await act('Send signal');
    await until('the signal is kept', async () => (await read(approvalId)).rev >= 6 || undefined);
    if (await dialog().isVisible()) await page.keyboard.press('Escape');
    expect((await read(approvalId)).status).toBe('paused');
    await button('Resume').click();
    await act('Resume');
    await status('done');
    expect((await read(approvalId)).fields).toMatchObject({ booking: { entry: 4 }, closed: true });
    await expectAccessible();
  });

  it('a fork begins as at an earlier revision with other fields', async () => {
    await open(`/executions/${approvalId}?rev=1`);
    await button('Fork from here').click();
    await dialog().getByRole('textbox', { name: 'Fields to set, as JSON' }).fill('{"manager": "max"}');
    await dialog().getByRole('textbox', { name: 'Key' }).fill('expense-17-again');
    await act('Fork');
    await dialog().getByRole('link', { name: 'Look at it' }).click();
    await page.getByRole('heading', { name: 'expense-17-again' }).waitFor();
    await status('waiting');
    await step(/approve/).waitFor();
  });

  it('a patch shows what it would do before it does it', async () => {
    await button('Patch').click();
    await dialog().getByRole('textbox', { name: 'Fields to set, as JSON' }).fill('{"amount": 5}');
    await dialog().getByRole('combobox', { name: 'Step to replace' }).selectOption('steps[0]');
    await dialog()
      .getByRole('textbox', { name: 'Steps that replace it, as YAML' })
      .fill('- set: {f.decision: {approved: false, comment: too late}}\n');
    // a person is at it: that must not be ended by chance
    await dialog().getByRole('alert').getByText('; force cancels it').waitFor();
    // the browser logs that, and that the answered work item is gone
    for (const fault of root.faults.splice(0)) expect(fault).toMatch(/409|410/);
    expect(await dialog().getByRole('button', { name: 'Patch', exact: true }).isDisabled()).toBe(true);
    await dialog().getByRole('checkbox').check();
    const preview = dialog().getByRole('region', { name: 'What the patch does' });
    await preview.getByText('Cancelled now').waitFor();
    await expectAccessible();
    await act('Patch');
    await closed();
    await page.getByText('patched', { exact: true }).waitFor();
    const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';
    expect((await read(id)).fields).toMatchObject({ amount: 5, decision: { approved: false } });
  });

  it('a step at work on a worker has its log, and an execution is followed while it ends', async () => {
    await open(`/executions/${seeded.order}`);
    await step(/task ship/).click();
    await page.getByText('packing order 4711').waitFor();
    await expectAccessible();
    await writeFile(join(seeded.folder, 'shipped'), '');
    await writeFile(join(seeded.folder, 'pictures'), '');
    await step(/task ship/)
      .getByText('the task ship')
      .waitFor({ state: 'detached' });
    await step(/each f\.images/).waitFor();
  });

  it('a retry of the incident goes on once the cause is gone', async () => {
    await writeFile(join(seeded.folder, 'mail'), '');
    const incidents = page.getByRole('region', { name: 'Incidents' });
    await incidents.getByRole('button', { name: 'Retry' }).click();
    await act('Retry');
    await closed();
    await incidents.waitFor({ state: 'detached' });
    await step(/task invoice/).waitFor();
  });

  it('cancelling asks first, undoes what was done, and the page shows it', async () => {
    await page.getByRole('main').getByRole('button', { name: 'Cancel', exact: true }).click();
    await dialog().getByText('completed steps with undo are undone').waitFor();
    await expectAccessible();
    await act('Cancel execution');
    await status('cancelled');
    expect(await button('Pause').count()).toBe(0);
  });

  it('executions are searched by status, flow, key and label, and many are operated on at once', async () => {
    await open('/executions');
    await page.getByRole('row', { name: /batch-7-29/ }).waitFor();
    await expectAccessible();
    await button('Failed').click();
    await page
      .getByRole('row', { name: /done batch/ })
      .first()
      .waitFor({ state: 'detached' });
    await page.getByText('Search', { exact: true }).last().click();
    await page.getByRole('combobox', { name: 'Flow' }).selectOption('quick');
    await page.getByRole('textbox', { name: 'Label' }).fill('batch:7');
    await page.getByRole('row', { name: /failed batch-7-3 / }).waitFor();
    await until('the address has the label', () => param('label') === 'batch:7' || undefined);
    await page.getByRole('textbox', { name: 'Key' }).fill('no-such-key');
    await page.getByText('No such executions').waitFor();
    await expectAccessible();
    await open('/executions?flow=quick&status=waiting');
    await button('Act on all of these').click();
    await dialog().getByRole('combobox', { name: 'Action' }).selectOption('cancel');
    await dialog()
      .getByText(/^3 executions/)
      .waitFor();
    await expectAccessible();
    await act('Cancel');
    await dialog().getByText('3 done. No execution is left.').waitFor();
  });

  it('the list of executions and the inbox follow what happens elsewhere', async () => {
    await open('/executions?flow=approval');
    await page.getByRole('row', { name: /expense-17 / }).waitFor();
    const inbox = await root.open('/workitems');
    const id = await start('approval', { id: 'live', manager: 'meg' });
    await page.getByRole('link', { name: id.slice(-8) }).waitFor();
    await inbox.getByRole('button', { name: 'Expense live' }).waitFor({ timeout: patienceMs });
    await expectAccessible(inbox);
    await product.call('POST /api/executions/{id}/kill', { params: { id } });
    await page.getByRole('row', { name: new RegExp(`cancelled ${id.slice(-8)}`) }).waitFor();
    await inbox.getByRole('button', { name: 'Expense live' }).waitFor({ state: 'detached', timeout: patienceMs });
    await inbox.close();
  });

  it('whoever has the link answers without a key, once', async () => {
    const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
    const visitor = await context.newPage();
    visitor.setDefaultTimeout(patienceMs);
    await visitor.goto(seeded.link);
    await visitor.getByRole('heading', { name: 'Expense e0 of eve' }).waitFor();
    await visitor.getByText('Train to Berlin').waitFor();
    await expectAccessible(visitor);
    await visitor.getByRole('radio', { name: 'No' }).check();
    await visitor.getByRole('textbox', { name: /Comment/ }).fill('by bus, please');
    await visitor.getByRole('button', { name: 'Send answer' }).click();
    await visitor.getByRole('heading', { name: 'Thank you' }).waitFor();
    await expectAccessible(visitor);
    await visitor.goto(seeded.link);
    await visitor.getByRole('heading', { name: 'Nothing to answer any more' }).waitFor();
    await visitor.goto(`${product.url}/answers/mra_nonsense`);
    await visitor.getByRole('heading', { name: 'This link is not valid' }).waitFor();
    await context.close();
    const [first = ''] = seeded.expenses;
    expect((await read(first)).fields).toMatchObject({ decision: { approved: false, comment: 'by bus, please' } });
  });

  it('an execution that is not there says so, with a way on', async () => {
    await open('/executions/01890a5d-0000-7000-8000-000000000000');
    await page.getByRole('alert').getByRole('heading', { name: 'Not found' }).waitFor();
    await page.getByRole('main').getByRole('link', { name: 'Executions' }).click();
    await page.getByRole('row', { name: /batch-8/ }).waitFor();
    // the refusals, which the browser logs
    for (const fault of root.faults.splice(0)) expect(fault).toContain('404');
  });

  it('a viewer sees the pages, and is offered no action', async () => {
    const { key } = await product.call('POST /api/keys', { body: { name: 'wall', role: 'viewer' } });
    const viewer = await signIn(browser, product, key);
    const wall = await viewer.open(`/executions/${seeded.paused}`);
    wall.setDefaultTimeout(patienceMs);
    await wall.getByRole('heading', { name: 'batch-8' }).waitFor();
    for (const path of [`/executions/${seeded.paused}`, '/flows', '/flows/quick', '/executions', '/workitems']) {
      await wall.goto(product.url + path);
      await wall.getByRole('heading', { level: 1 }).waitFor();
      await wall.getByRole('main').getByRole('link').first().waitFor();
      const actions = wall.getByRole('main').getByRole('button', {
        name: /^(Start|Delete|Signal|Patch|Fork|Pause|Resume|Cancel|Retry|Skip|Act on all of these|Claim|Send answer)$/,
      });
      expect(await actions.count()).toBe(0);
    }
    expect(viewer.faults).toEqual([]);
    await viewer.context.close();
  });

  it('a flow is deleted after a question, and its executions stay', async () => {
    await open('/flows/approval');
    await button('Delete').click();
    await act('Delete flow');
    await page.getByRole('row', { name: /^order/ }).waitFor();
    await page.getByRole('row', { name: /^approval/ }).waitFor({ state: 'detached' });
    expect((await read(approvalId)).status).toBe('done');
  });

  // the page of the deleted flow may hear of its deletion, and read it once more, before it is left
  it('the pages log no errors on the console', () => expect(root.faults.join('\n')).toMatch(/^(.*404.*)?$/));
});
