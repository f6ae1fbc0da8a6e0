/** Flows and executions in the search and on the start page. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { anyText } from '../../../test/harness/expected.ts';
import { type FlowApi, makeFlowApi } from '../../../test/harness/flows/flow-api.ts';

let api: FlowApi;
beforeAll(async () => {
  api = await makeFlowApi({
    fail: () => {
      throw Object.assign(new Error('no money'), { code: 'declined' });
    },
  });
  await api.apply({ flow: 'order parcels', steps: [{ task: 'fail' }] });
  await api.apply({ flow: 'order letters', steps: [{ wait: '1h' }] });
});
afterAll(() => api.close());

it('the search finds flows by words, and executions by key or id', async () => {
  const id = await api.launch('order letters', {}, 'letter/17');
  const find = async (q: string) =>
    (await api.call('GET /api/search', { query: { q } })).items.map(({ kind, name, id: of }) => [kind, name, of]);
  expect((await find('order')).map(([kind, name]) => [kind, name])).toEqual([
    ['flow', 'order letters'],
    ['flow', 'order parcels'],
  ]);
  const found = [['execution', 'order letters letter/17', id]];
  expect(await find('letter/17')).toEqual(found);
  expect(await find(id)).toEqual(found);
});

it('the start page shows executions that wait for a repair', async () => {
  expect((await api.call('GET /api/overview')).incidents).toEqual({ total: 0, items: [] });
  const first = await api.launch('order parcels', {}, 'parcel');
  await api.reached(first, 'incident');
  const second = await api.launch('order parcels');
  await api.reached(second, 'incident');
  const item = { flow: 'order parcels', node: '0_0-2', code: 'declined', since: anyText };
  expect((await api.call('GET /api/overview')).incidents).toEqual({
    total: 2,
    items: [
      { ...item, execution: second, key: null },
      { ...item, execution: first, key: 'parcel' },
    ],
  });
});
