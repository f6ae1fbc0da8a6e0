import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anyText, refusal, textWith } from '../../../test/harness/expected.ts';
import { type FlowApi, makeFlowApi } from '../../../test/harness/flows/flow-api.ts';
import { keyOf } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';

let api: FlowApi;
/** Answers of the function `charge`, by the amount. */
beforeAll(async () => {
  api = await makeFlowApi({
    charge: (input) => {
      const { amount } = input as { amount: number };
      if (amount > 100) throw Object.assign(new Error('too much'), { code: 'declined' });
      return { paid: amount };
    },
  });
  await api.apply({
    flow: 'order',
    labels: { customer: '$(input.customer)' },
    steps: [
      { task: 'charge', with: { amount: '$(f.amount)' }, result: 'f.payment' },
      { wait: { on: { signal: 'ship' }, for: '1d' }, result: 'f.shipped' },
    ],
  });
  await api.apply({
    flow: 'asks',
    steps: [{ task: 'approve', human: { team: 'leads', title: 'ok?' }, timeout: '2h' }],
  });
  await api.apply({ flow: 'far', steps: [{ task: 'unknown-function' }] });
  await api.apply({
    flow: 'items',
    steps: [
      { each: 'f.list', concurrent: 9, do: [{ wait: { on: { signal: 'go' } }, when: 'it > 0' }], vars: { a: 1 } },
    ],
  });
});
afterAll(() => api.close());

const show = (id: string, rev?: number) =>
  api.call('GET /api/executions/{id}', { params: { id }, query: rev === undefined ? {} : { rev } });
const signal = (id: string, name: string, payload: unknown = null, headers = {}) =>
  api.call('POST /api/executions/{id}/signals', { params: { id }, body: { name, payload }, headers });

/** The status and the code of a plain request. */
async function statusOf(method: string, path: string, body?: unknown): Promise<[number, string | undefined]> {
  const options = { caller: keyOf('operator'), ...(body !== undefined && { body: JSON.stringify(body) }) };
  const answer = await api.fetch(method, path, options);
  const { code } = (await answer.json().catch(() => ({}))) as { code?: string };
  return [answer.status, code];
}

describe('launching', () => {
  it('answers after the commit, with the id of the execution', async () => {
    const launched = await api.call('POST /api/executions', { body: { flow: 'order', input: { amount: 5 } } });
    expect(launched).toEqual({ id: anyText, created: true });
    expect((await show(launched.id)).rev).toBeGreaterThan(0);
  });

  it('starts nothing for a key that an execution has', async () => {
    const body = { flow: 'order', input: { amount: 5 }, key: 'order/17' };
    const first = await api.call('POST /api/executions', { body });
    expect(await api.call('POST /api/executions', { body })).toEqual({ id: first.id, created: false });
    expect(await statusOf('POST', '/api/executions', body)).toEqual([200, undefined]);
  });

  it('refuses flows and versions that do not exist, and inputs beyond a megabyte', async () => {
    expect(await statusOf('POST', '/api/executions', { flow: 'nothing' })).toEqual([404, 'not_found']);
    expect(await statusOf('POST', '/api/executions', { flow: 'order', version: 9 })).toEqual([404, 'not_found']);
    const large = { flow: 'order', input: { text: 'x'.repeat(1024 * 1024) } };
    expect(await statusOf('POST', '/api/executions', large)).toEqual([413, 'too_large']);
    const huge = { flow: 'order', input: { text: 'x'.repeat(4 * 1024 * 1024) } };
    expect(await statusOf('POST', '/api/executions', huge)).toEqual([413, 'too_large']);
  });

  it('of many at once gives each its outcome', async () => {
    const key = newId();
    const items = [{ input: { amount: 1 } }, { input: { amount: 2 }, key }, { input: { text: 'x'.repeat(1_100_000) } }];
    const bulk = () => api.call('POST /api/executions/bulk', { body: { flow: 'order', items } });
    const [first, second] = [await bulk(), await bulk()];
    expect(first.items).toMatchObject([
      { outcome: 'created' },
      { outcome: 'created' },
      { id: null, outcome: 'refused', code: 'too_large' },
    ]);
    expect(second.items[1]).toEqual({ id: first.items[1]?.id, outcome: 'known' });
    const unknown = { flow: 'nothing', items: [{ input: 1 }, { input: 2 }] };
    expect(await statusOf('POST', '/api/executions/bulk', unknown)).toEqual([404, 'not_found']);
    const repeated = { flow: 'order', items: [{ key: 'same' }, { key: 'same' }] };
    expect(await statusOf('POST', '/api/executions/bulk', repeated)).toEqual([400, 'bad_request']);
  });
});

describe('a view of an execution', () => {
  it('shows what each node waits for, and the tree with its states', async () => {
    const id = await api.launch('order', { amount: 5, customer: 'acme' });
    await api.reached(id, 'waiting');
    const view = await show(id);
    expect(view).toMatchObject({
      flow: 'order',
      version: 1,
      status: 'waiting',
      labels: { customer: 'acme' },
      input: { amount: 5, customer: 'acme' },
      fields: { amount: 5, payment: { paid: 5 } },
      cut: [],
      error: null,
      incidents: [],
      nodes_total: 2,
      own_document: false,
      early: { total: 0, names: [] },
      is_busy: false,
      owner: { alive: true },
    });
    expect(view.nodes).toMatchObject([
      { path: 'steps', verb: 'sequence', waits: { kind: 'steps' } },
      {
        path: 'steps[1]',
        verb: 'wait',
        waits: { kind: 'signal', names: ['ship'], message: textWith('the signal ship, until ') },
        timers: [{ name: 'wait' }],
      },
    ]);
    expect(view.tree.children.map(({ verb, title, state }) => [verb, title, state])).toEqual([
      ['task', 'charge', 'done'],
      ['wait', 'signal ship or 1d', 'waiting'],
    ]);
  });

  it('shows the execution as at any of its revisions', async () => {
    const id = await api.launch('order', { amount: 7 });
    await api.reached(id, 'waiting');
    const now = await show(id);
    const first = await show(id, 1);
    expect([first.rev, first.fields, first.tree.children[0]?.state]).toEqual([1, { amount: 7 }, 'running']);
    expect(now.rev).toBeGreaterThan(1);
    await expect(show(id, 99)).rejects.toEqual(refusal(404));
    await expect(show(newId())).rejects.toEqual(refusal(404));
  });

  it('shows incidents, with the error of the step', async () => {
    const id = await api.launch('order', { amount: 500 });
    await api.reached(id, 'incident');
    const view = await show(id);
    expect(view.incidents).toMatchObject([{ path: 'steps[0]', code: 'declined', message: 'too much' }]);
    expect(view.nodes[1]).toMatchObject({
      phase: 'incident',
      waits: { kind: 'incident' },
      error: { code: 'declined' },
    });
    expect(view.tree.children[0]?.state).toBe('incident');
  });

  it('names the work item of a human task, and the item of an each', async () => {
    const asked = await api.launch('asks');
    const [item] = (await api.call('GET /api/workitems', { query: { execution: asked } })).items;
    expect((await show(asked)).nodes[1]).toMatchObject({
      workitem: item?.id,
      name: 'approve',
      waits: { kind: 'human', names: ['approve'] },
      timers: [{ name: 'timeout' }],
    });
    const each = await api.launch('items', { list: [1, 0, 2] });
    const { nodes } = await show(each);
    expect(nodes.filter(({ item: of }) => of !== null).map(({ item: of }) => of)).toEqual([
      { index: 0, key: 0 },
      { index: 2, key: 2 },
    ]);
    expect(nodes.find(({ verb }) => verb === 'each')?.vars).toEqual({ a: 1 });
  });

  it('leaves out values that do not fit, and names them', async () => {
    const id = await api.launch('order', { amount: 5, a: 'x'.repeat(700_000), b: 1 });
    const { fields, cut } = await show(id);
    expect(Object.keys(fields)).toContain('b');
    expect(cut).toEqual([]);
    await api.call('PATCH /api/executions/{id}', {
      params: { id },
      body: { fields: { c: 'x'.repeat(1_000_000), d: 'y'.repeat(1_000_000) } },
    });
    const view = await show(id);
    expect(view.cut.length).toBeGreaterThan(0);
    expect(JSON.stringify(view).length).toBeLessThan(3_000_000);
  });
});

describe('a list of executions', () => {
  it('is searched by flow, status, label, key and parent, a page at a time', async () => {
    const customer = newId();
    const key = newId();
    const ids = [
      await api.launch('order', { amount: 5, customer }, key),
      await api.launch('order', { amount: 5, customer }),
    ];
    await Promise.all(ids.map((id) => api.reached(id, 'waiting')));
    const list = async (query: object) => (await api.call('GET /api/executions', { query })).items.map(({ id }) => id);
    const newest = ids.toReversed();
    expect(await list({ label: `customer:${customer}` })).toEqual(newest);
    expect(await list({ label: `customer:${customer}`, status: 'waiting,paused', flow: 'order', version: 1 })).toEqual(
      newest,
    );
    expect(await list({ label: `customer:${customer}`, status: 'done' })).toEqual([]);
    expect(await list({ key })).toEqual([ids[0]]);
    expect(await list({ key, status: 'running' })).toEqual([]);
    expect(await list({ parent: ids[0] })).toEqual([]);
    const first = await api.call('GET /api/executions', { query: { label: `customer:${customer}`, limit: 1 } });
    expect([first.items[0]?.id, first.next]).toEqual([ids[1], ids[1]]);
    expect(await list({ label: `customer:${customer}`, limit: 1, cursor: first.next })).toEqual([ids[0]]);
    const { created_at: at = '' } = first.items[0] ?? {};
    expect(await list({ label: `customer:${customer}`, created_before: at })).toEqual([ids[0]]);
    expect(await list({ label: `customer:${customer}`, created_after: at })).toEqual([ids[1]]);
    expect(await statusOf('GET', '/api/executions?cursor=x')).toEqual([400, 'bad_request']);
    expect(await statusOf('GET', '/api/executions?status=gone')).toEqual([400, 'bad_request']);
  });
});

describe('operations', () => {
  it('a signal ends a wait, and the same Idempotency-Key has one effect', async () => {
    const id = await api.launch('order', { amount: 5 });
    const headers = { 'idempotency-key': 'parcel/1' };
    expect(await signal(id, 'ship', { parcel: 1 }, headers)).toEqual({ outcome: 'committed' });
    await api.reached(id, 'done');
    expect((await show(id)).fields['shipped']).toEqual({ parcel: 1 });
    const other = await api.launch('items', { list: [1, 2] });
    expect(await signal(other, 'go', null, headers)).toEqual({ outcome: 'committed' });
    expect(await signal(other, 'go', null, headers)).toEqual({ outcome: 'known' });
    expect((await show(other)).status).toBe('waiting');
    await expect(signal(id, 'ship')).rejects.toEqual(refusal(409));
    await expect(signal(newId(), 'ship')).rejects.toEqual(refusal(404));
  });

  it('pause, resume, cancel and kill, each with an entry in the history by its actor', async () => {
    const id = await api.launch('order', { amount: 5 });
    await api.reached(id, 'waiting');
    const operate = (action: 'pause' | 'resume' | 'cancel' | 'kill') =>
      api.call(`POST /api/executions/{id}/${action}`, { params: { id } });
    expect(await operate('pause')).toEqual({ outcome: 'committed' });
    expect((await show(id)).status).toBe('paused');
    await expect(operate('pause')).rejects.toEqual(refusal(409));
    await operate('resume');
    await operate('cancel');
    await api.reached(id, 'cancelled');
    await expect(operate('kill')).rejects.toEqual(refusal(409));
    const { items } = await api.call('GET /api/executions/{id}/history', { params: { id } });
    expect(
      items.slice(-3).map(({ point, summary, actor, changes }) => [point, summary, actor, changes.status]),
    ).toEqual([
      ['operate', 'pause', 'key:operator', 'paused'],
      ['operate', 'resume', 'key:operator', 'resumed'],
      ['operate', 'cancel', 'key:operator', 'cancelled'],
    ]);
  });

  it('retry and skip a failed step', async () => {
    const id = await api.launch('order', { amount: 500 });
    await api.reached(id, 'incident');
    const [incident] = (await show(id)).incidents;
    const path = { id, node: incident?.node ?? '' };
    await api.call('PATCH /api/executions/{id}', { params: { id }, body: { fields: { amount: 50 } } });
    expect(await api.call('POST /api/executions/{id}/nodes/{node}/retry', { params: path })).toEqual({
      outcome: 'committed',
    });
    await api.reached(id, 'waiting');
    expect((await show(id)).fields['payment']).toEqual({ paid: 50 });
    const skip = (node: string, result: unknown) =>
      api.call('POST /api/executions/{id}/nodes/{node}/skip', { params: { id, node }, body: { result } });
    const wait = (await show(id)).nodes.find(({ verb }) => verb === 'wait')?.id ?? '';
    await skip(wait, 'by hand');
    await api.reached(id, 'done');
    expect((await show(id)).fields['shipped']).toBe('by hand');
    await expect(skip('0_0-99', 1)).rejects.toEqual(refusal(409));
    const live = await api.launch('order', { amount: 5 });
    const answer = await statusOf('POST', `/api/executions/${live}/nodes/0_7-99/retry`);
    expect(answer).toEqual([404, 'not_found']);
    expect(await statusOf('POST', `/api/executions/${live}/nodes/x/retry`)).toEqual([400, 'bad_request']);
  });

  it('on the executions of a filter, a page at a time, with failures', async () => {
    const customer = newId();
    const amounts = [500, 500, 5];
    const ids: string[] = [];
    for (const amount of amounts) ids.push(await api.launch('order', { amount, customer }));
    await Promise.all(ids.map((id, i) => api.reached(id, amounts[i] === 5 ? 'waiting' : 'incident')));
    const operate = (action: 'skip' | 'kill', more: object = {}) =>
      api.call('POST /api/executions/operate', {
        body: { filter: { label: `customer:${customer}` }, action, ...more },
      });
    const none = { accepted: 0, refused: 0, failures: [], next: null };
    expect(await operate('skip', { dry_run: true })).toEqual({ matched: 3, done: 0, ...none });
    expect(await operate('skip')).toEqual({
      ...none,
      matched: 3,
      done: 2,
      refused: 1,
      failures: [{ id: ids[2], code: 'no_incident', detail: anyText }],
    });
    const first = await operate('kill', { limit: 2 });
    expect(first).toMatchObject({ matched: 2, done: 2, next: ids[1] });
    expect(await operate('kill', { cursor: first.next })).toMatchObject({ matched: 1, done: 1, next: null });
    await Promise.all(ids.map((id) => api.reached(id, 'cancelled')));
    expect(await operate('kill')).toMatchObject({ done: 0, refused: 3, failures: [{ code: 'over' }, {}, {}] });
  });
});

describe('the history', () => {
  it('shows what each commit changed and sent', async () => {
    const id = await api.launch('order', { amount: 5 });
    await signal(id, 'ship');
    await api.reached(id, 'done');
    const { items, next } = await api.call('GET /api/executions/{id}/history', { params: { id } });
    expect(next).toBeNull();
    expect(items.map(({ rev }) => rev)).toEqual(items.map((_, i) => i + 1));
    expect(items[0]).toMatchObject({
      point: 'launch',
      actor: 'key:operator',
      member: anyText,
      changes: {
        fields: { amount: 5 },
        nodes: [
          { path: 'steps', from: null, to: 'run' },
          { path: 'steps[0]', to: 'run' },
        ],
      },
      sent: [{ kind: 'task', name: 'charge', attempt: 1 }],
    });
    const answer = items.find(({ point }) => point === 'answer');
    expect(answer).toMatchObject({ actor: null, summary: 'done', changes: { fields: { payment: { paid: 5 } } } });
    expect(items.at(-1)?.changes.status).toBe('done');
    const page = await api.call('GET /api/executions/{id}/history', { params: { id }, query: { limit: 1, after: 1 } });
    expect([page.items.map(({ rev }) => rev), page.next]).toEqual([[2], '2']);
    expect(page.items[0]?.changes.nodes.every(({ from, to }) => from !== null || to !== null)).toBe(true);
  });
});
