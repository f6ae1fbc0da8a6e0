/** Messages while no conductor runs: they are stored, answered with 202 and a reason, and take effect later. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { textWith } from '../../../test/harness/expected.ts';
import { type FlowApi, makeFlowApi } from '../../../test/harness/flows/flow-api.ts';
import { keyOf } from '../../../test/harness/tenant-api.ts';

let api: FlowApi;
beforeAll(async () => {
  api = await makeFlowApi({ hello: () => 'hi' });
  await api.apply({ flow: 'waits', steps: [{ wait: { on: { signal: 'go' } }, result: 'f.went' }] });
});
afterAll(() => api.close());
afterEach(() => api.startConductor());

async function send(path: string, body: object): Promise<{ status: number; body: unknown }> {
  const answer = await api.fetch('POST', path, { caller: keyOf('operator'), body: JSON.stringify(body) });
  return { status: answer.status, body: await answer.json() };
}

it('a launch and a signal are stored, and take effect in order once a conductor runs', async () => {
  await api.stopConductor();
  const launched = await send('/api/executions', { flow: 'waits', key: 'k' });
  expect(launched).toMatchObject({
    status: 202,
    body: { created: true, accepted: true, detail: textWith('no conductor is running') },
  });
  const { id } = launched.body as { id: string };
  expect(await send('/api/executions', { flow: 'waits', key: 'k' })).toMatchObject({
    status: 200,
    body: { id, created: false },
  });
  expect(await send('/api/executions', { flow: 'nothing' })).toMatchObject({ status: 404 });
  expect(await send(`/api/executions/${id}/signals`, { name: 'go', payload: 5 })).toMatchObject({
    status: 202,
    body: { outcome: 'accepted', detail: textWith('no conductor') },
  });
  const view = await api.call('GET /api/executions/{id}', { params: { id } });
  expect(view).toMatchObject({ rev: 0, status: 'running', nodes: [], owner: null, tree: { state: 'idle' } });
  await api.startConductor();
  await api.reached(id, 'done');
  expect((await api.call('GET /api/executions/{id}', { params: { id } })).fields).toEqual({ went: 5 });
  await api.stopConductor();
});

it('launches of a bulk and operations on many are counted as accepted', async () => {
  const id = await api.launch('waits');
  await api.stopConductor();
  const bulk = await api.call('POST /api/executions/bulk', { body: { flow: 'waits', items: [{}, {}] } });
  expect(bulk.items.map(({ outcome }) => outcome)).toEqual(['accepted', 'accepted']);
  const body = { filter: { flow: 'waits', status: 'waiting' }, action: 'kill' } as const;
  expect(await api.call('POST /api/executions/operate', { body })).toMatchObject({ matched: 1, accepted: 1, done: 0 });
  const change = await api.call('PATCH /api/executions/{id}', { params: { id }, body: { fields: { a: 1 } } });
  expect(change).toMatchObject({ outcome: 'accepted', detail: textWith('no conductor') });
});
