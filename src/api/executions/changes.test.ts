import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { anyText, refusal, textWith } from '../../../test/harness/expected.ts';
import { type FlowApi, makeFlowApi } from '../../../test/harness/flows/flow-api.ts';
import { keyOf } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';

let api: FlowApi;
/** Calls of the function `pack` that have not returned. */
const held: ((value: unknown) => void)[] = [];
beforeAll(async () => {
  api = await makeFlowApi({
    ship: (input) => ({ shipped: input }),
    pack: (_, { signal }) =>
      new Promise((resolve, reject) => {
        held.push(resolve);
        signal.addEventListener('abort', () => reject(new Error('stopped')));
      }),
  });
  await api.apply({
    flow: 'order',
    steps: [
      { set: { 'f.begun': true } },
      { wait: { on: { signal: 'pay' }, for: '1d' }, tag: 'paying' },
      { task: 'ship', with: { to: '$(f.to)' }, result: 'f.parcel' },
    ],
  });
  await api.apply({
    flow: 'packing',
    steps: [{ sequence: [{ task: 'pack' }], timeout: '1h' }, { set: { 'f.packed': true } }],
  });
});
afterAll(() => api.close());

const show = (id: string) => api.call('GET /api/executions/{id}', { params: { id } });
type Change = Parameters<typeof change>[1];
const change = (
  id: string,
  body: { fields?: Record<string, unknown>; swap?: Record<string, unknown[]>; dry_run?: boolean; force?: boolean },
) => api.call('PATCH /api/executions/{id}', { params: { id }, body });

/** The status and the faults of a refused change. */
async function refused(id: string, body: Change): Promise<[number, string, string[]]> {
  const answer = await api.fetch('PATCH', `/api/executions/${id}`, {
    caller: keyOf('operator'),
    body: JSON.stringify(body),
  });
  const { detail, faults = [] } = (await answer.json()) as { detail: string; faults?: { path: string }[] };
  return [answer.status, detail, faults.map(({ path }) => path)];
}

describe('a change of a live execution', () => {
  it('sets fields, and the history names who did it', async () => {
    const id = await api.launch('order', { to: 'Rome' });
    const none = { tree: [], cancelled: [], timers_removed: [] };
    expect(await change(id, { fields: { to: 'Oslo' }, dry_run: true })).toEqual({ outcome: 'dry_run', diff: none });
    expect((await show(id)).fields['to']).toBe('Rome');
    expect(await change(id, { fields: { to: 'Oslo', note: { a: [1] } } })).toEqual({
      outcome: 'committed',
      diff: none,
    });
    expect((await show(id)).fields).toMatchObject({ to: 'Oslo', note: { a: [1] } });
    const { items } = await api.call('GET /api/executions/{id}/history', { params: { id } });
    expect(items.at(-1)).toMatchObject({
      actor: 'key:operator',
      summary: 'fields',
      changes: { fields: { to: 'Oslo' } },
    });
  });

  it('replaces a step that waits, after a dry run that shows the difference', async () => {
    const id = await api.launch('order', { to: 'Rome' });
    const node = (await show(id)).nodes.find(({ verb }) => verb === 'wait')?.id ?? '';
    const swap = { [node]: [{ set: { 'f.paid': 'later' } }] };
    const diff = {
      tree: [{ path: 'steps[1]', from: 'wait signal pay or 1d', to: 'set f.paid' }],
      cancelled: [node],
      timers_removed: [`${node}/wait`],
    };
    expect(await change(id, { swap, dry_run: true })).toEqual({ outcome: 'dry_run', diff });
    expect((await show(id)).own_document).toBe(false);
    expect(await change(id, { swap })).toEqual({ outcome: 'committed', diff });
    await api.reached(id, 'done');
    const view = await show(id);
    expect([view.own_document, view.fields]).toMatchObject([
      true,
      { paid: 'later', parcel: { shipped: { to: 'Rome' } } },
    ]);
    const document = await api.call('GET /api/executions/{id}/document', { params: { id } });
    expect(document['steps']).toMatchObject([{}, { set: { 'f.paid': 'later' } }, { task: 'ship' }]);
    const former = await api.call('GET /api/executions/{id}/document', { params: { id }, query: { rev: 1 } });
    expect(former['steps']).toMatchObject([{}, { tag: 'paying' }, {}]);
  });

  it('replaces steps that come later, by their places, with several', async () => {
    const id = await api.launch('order', { to: 'Rome' });
    const steps = [{ set: { 'f.to': 'Bonn' } }, { task: 'ship', with: { to: '$(f.to)' }, result: 'f.parcel' }];
    expect((await change(id, { swap: { 'steps[2]': steps } })).diff).toMatchObject({
      cancelled: [],
      timers_removed: [],
    });
    await api.call('POST /api/executions/{id}/signals', { params: { id }, body: { name: 'pay' } });
    await api.reached(id, 'done');
    expect((await show(id)).fields['parcel']).toEqual({ shipped: { to: 'Bonn' } });
  });

  it('names every fault of the new document with its path, and what does not exist', async () => {
    const id = await api.launch('order', { to: 'Rome' });
    const faulty = { swap: { 'steps[2]': [{ task: 5 }, { wait: 'soon' }] } };
    expect(await refused(id, faulty)).toEqual([
      400,
      anyText,
      ['steps[2].sequence[0].task', 'steps[2].sequence[1].wait'],
    ]);
    expect(await refused(id, { swap: { 'steps[7]': [] } })).toEqual([400, anyText, ['swap["steps[7]"]']]);
    expect(await refused(id, { swap: { '0_1-99': [] } })).toEqual([404, anyText, ['body.swap["0_1-99"]']]);
    expect(await refused(id, {})).toEqual([400, textWith('neither fields nor steps'), ['body']]);
    expect(await refused(id, { fields: { 'a b': 1 } })).toEqual([400, anyText, ['body.fields["a b"]']]);
    expect((await refused(newId(), { fields: { a: 1 } }))[0]).toBe(404);
  });

  it('does not end a task under way unless that is forced', async () => {
    const id = await api.launch('packing');
    const swap = { 'steps[0]': [{ set: { 'f.by': 'hand' } }] };
    const [status, detail] = await refused(id, { swap, dry_run: true });
    expect([status, detail]).toEqual([409, textWith('a task is under way at the node 0_0_0-')]);
    expect(detail).toMatch(/; force cancels it$/);
    const forced = await change(id, { swap, force: true, dry_run: true });
    expect(forced.diff.cancelled).toHaveLength(2);
    await change(id, { swap, force: true });
    await api.reached(id, 'done');
    expect((await show(id)).fields).toEqual({ by: 'hand', packed: true });
    expect(await refused(id, { fields: { a: 1 } })).toEqual([409, anyText, []]);
  });
});

describe('a fork', () => {
  const fork = (id: string, body: object = {}) => api.call('POST /api/executions/{id}/fork', { params: { id }, body });

  it('begins with the state of another execution, and goes its own way', async () => {
    const id = await api.launch('order', { to: 'Rome' });
    const { rev } = await show(id);
    await change(id, { fields: { to: 'Oslo' } });
    const forked = await fork(id, { rev, fields: { extra: 1 } });
    expect(forked).toEqual({ id: anyText, created: true });
    expect((await show(forked.id)).fields).toMatchObject({ to: 'Rome', extra: 1, begun: true });
    await api.call('POST /api/executions/{id}/signals', { params: { id: forked.id }, body: { name: 'pay' } });
    await api.reached(forked.id, 'done');
    expect((await show(id)).status).toBe('waiting');
  });

  it('is idempotent by its key, may swap steps, and is refused for an execution that has ended', async () => {
    const id = await api.launch('order', { to: 'Rome' });
    const key = newId();
    const swap = { 'steps[1]': [{ set: { 'f.paid': true } }] };
    const first = await fork(id, { key, swap });
    expect(await fork(id, { key, swap })).toEqual({ id: first.id, created: false });
    await api.reached(first.id, 'done');
    expect((await show(first.id)).fields).toMatchObject({ paid: true, parcel: { shipped: { to: 'Rome' } } });
    await expect(fork(first.id)).rejects.toEqual(refusal(409));
    await expect(fork(newId())).rejects.toEqual(refusal(404));
    await expect(fork(id, { rev: 999 })).rejects.toEqual(refusal(404));
  });
});
