/**
 * Flows on a busy day: an order with an incident, work on a worker, a person and pictures under way; expenses that wait for people; an
 * execution that is paused, one that has called another, and many that have ended in every way. The product must host the functions
 * of `flow-functions.mjs` (`flowArgs`).
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Product } from '../product.ts';
import { until } from '../until.ts';

export const flowArgs = ['--functions', fileURLToPath(new URL('flow-functions.mjs', import.meta.url))];

const order = `flow: order
description: Reserve, charge and ship; everything is undone when it fails
labels: {customer: $(input.order.customer), region: north}
steps:
- task: reserve-stock
  with: {items: $(f.order.items)}
  result: f.reservation
  undo: [{task: release-stock, with: {id: $(f.reservation.id)}}]
- task: charge
  tag: payment
  with: {amount: $(f.order.total), card: $(f.card)}
  retry: {max_attempts: 3, delay: 100ms}
  result: f.payment
  undo: [{task: refund, with: {payment: $(f.payment.id)}}]
- if: f.payment.amount > 1000
  then: [{wait: {on: {signal: released}, for: 1d}}]
  else: [{set: {f.size: small}}]
- parallel:
  - task: ship
    process: {command: [sh, -c, 'echo "packing order $0"; echo "label printed"; while ! [ -e "$1/shipped" ]; do sleep 0.2; done; echo gone', $(f.order.id), $(f.folder)]}
    timeout: 2h
  - task: invoice
    with: {to: $(f.order.email), folder: $(f.folder)}
    retry: {max_attempts: 2, delay: 100ms}
  - sequence:
    - on: {every: 2d}
      do: [{task: tell, with: {to: $(f.order.email)}}]
    - task: approve
      human: {team: packers, title: Check the parcel of order $(f.order.id), form: {complete: boolean, note: text, weight: number}}
      result: f.check
  - each: f.images
    concurrent: 40
    do:
    - task: thumbnail
      with: {url: $(it), folder: $(f.folder)}
      on_error: [{set: {ret: null}}]
    result: f.thumbnails
- call: receipt
  with: {order: $(f.order.id)}
- wait: {on: {signal: returned}, for: 30d}
on_error:
- match: card_expired
  do: [{task: tell, with: {why: $(err.code)}}, {fail: $(err)}]
`;

const expense = `flow: expense
description: A manager decides; after a week the finance leads are asked
labels: {employee: $(input.employee)}
steps:
- sequence:
  - on: {every: 1s}
    count: 1
    do: [{task: remind, with: {folder: $(f.folder), id: $(f.id), link: $(links.approve)}}]
  - task: approve
    with: {employee: $(f.employee), amount: $(f.amount), purpose: $(f.purpose)}
    human:
      assignee: $(f.manager)
      title: Expense $(f.id) of $(f.employee)
      form: {approved: boolean, comment: text, kind: {choices: [travel, meal, other], label: Kind of cost}}
    result: f.decision
  timeout: 7d
  on_timeout:
  - task: approve
    human: {team: finance-leads, title: Escalated expense $(f.id), form: {approved: boolean}}
    result: f.decision
- if: f.decision.approved
  then: [{task: pay, with: {amount: $(f.amount)}, result: f.payment}]
  else: [{task: tell, with: {why: $(f.decision.comment)}}]
`;

const receipt = `flow: receipt
steps:
- wait: {on: {signal: printed}}
`;

const quick = `flow: quick
description: Ends at once, well or badly
labels: {batch: $(string(input.batch))}
sealed: [f.pin]
steps:
- switch: input.end
  cases:
    fail: [{fail: {code: out_of_stock, message: nothing is left}}]
    wait: [{wait: 1h}]
  else: [{set: {f.done: true}}]
`;

export interface SeededFlows {
  /** Where files decide what becomes of tasks. */
  readonly folder: string;
  /** The order with the incident. */
  readonly order: string;
  /** Expenses that wait for their manager. */
  readonly expenses: readonly string[];
  readonly paused: string;
  /** Answers the first expense without a key. */
  readonly link: string;
}

function orderInput(folder: string, id: number, more: object = {}) {
  const images = Array.from({ length: 30 }, (_, i) => `https://img.example/${id}/${i}.png`);
  const items = [
    { sku: 'A1', count: 2 },
    { sku: 'B7', count: 1 },
  ];
  const order = { id: String(id), total: 129.5, items, email: 'ann@example.org', customer: 'Fisher & Sons' };
  return { folder, order, card: 'visa', images, ...more };
}

async function applyFlows(product: Product): Promise<void> {
  for (const body of [receipt, order, expense, quick]) {
    await product.call('POST /api/flows', { body, headers: { 'content-type': 'application/yaml' } });
  }
}

async function launch(product: Product, flow: string, input: unknown, key?: string): Promise<string> {
  const body = { flow, input, ...(key !== undefined && { key }) };
  return (await product.call('POST /api/executions', { body })).id;
}

async function statusOf(product: Product, id: string): Promise<string> {
  return (await product.call('GET /api/executions/{id}', { params: { id } })).status;
}

export async function seedFlows(product: Product): Promise<SeededFlows> {
  await applyFlows(product);
  const folder = product.taskFolder;
  const order = await launch(product, 'order', orderInput(folder, 4711), 'order-4711');
  const refused = await launch(product, 'order', orderInput(folder, 4709, { card: 'expired' }), 'order-4709');
  const expenses: string[] = [];
  for (const [i, manager] of ['meg', 'meg', 'max'].entries()) {
    const input = {
      folder,
      id: `e${i}`,
      amount: 12.5 + i,
      employee: 'eve',
      account: 'DE02 1203',
      manager,
      purpose: 'Train to Berlin',
    };
    expenses.push(await launch(product, 'expense', input));
  }
  const items = Array.from({ length: 30 }, (_, i) => ({
    input: { batch: 7, pin: '1234', end: i % 10 === 3 ? 'fail' : i % 10 === 6 ? 'wait' : 'well' },
    key: `batch-7-${i}`,
  }));
  await product.call('POST /api/executions/bulk', { body: { flow: 'quick', items } });
  const paused = await launch(product, 'quick', { batch: 8, pin: '1234', end: 'wait' }, 'batch-8');
  await until('it waits', async () => (await statusOf(product, paused)) === 'waiting' || undefined);
  await product.call('POST /api/executions/{id}/pause', { params: { id: paused } });
  await until('the order has its incident', async () => (await statusOf(product, order)) === 'incident' || undefined);
  await until('the refused order was undone', async () => (await statusOf(product, refused)) === 'failed' || undefined);
  const link = await until('the first manager is reminded', () =>
    readFile(join(folder, 'link-e0'), 'utf8').catch(() => undefined),
  );
  return { folder, order, expenses, paused, link };
}
