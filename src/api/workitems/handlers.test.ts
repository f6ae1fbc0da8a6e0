import { afterAll, beforeAll, expect, it } from 'vitest';
import { anyText, refusal } from '../../../test/harness/expected.ts';
import { type FlowApi, makeFlowApi } from '../../../test/harness/flows/flow-api.ts';
import { keyOf } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';

let api: FlowApi;
beforeAll(async () => {
  api = await makeFlowApi();
  const form = {
    approved: { type: 'boolean', required: true, label: 'Approve it?' },
    comment: 'text',
    size: ['s', 'm'],
    count: { type: 'integer', default: 1 },
  };
  await api.apply({
    flow: 'asks',
    steps: [
      {
        task: 'approve',
        with: { amount: '$(f.amount)' },
        human: { assignee: '$(f.who)', title: 'Approve $(f.amount)?', form, due: '2h' },
        timeout: '1d',
        result: 'f.decision',
      },
    ],
  });
  await api.apply({
    flow: 'free',
    steps: [{ task: 'say', human: { team: 'all', title: 'Anything' }, timeout: '1d', result: 'f.said' }],
  });
});
afterAll(() => api.close());

async function asked(who = 'meg', amount: unknown = 5): Promise<{ execution: string; id: string }> {
  const execution = await api.launch('asks', { who, amount });
  const { items } = await api.call('GET /api/workitems', { query: { execution } });
  return { execution, id: items[0]?.id ?? '' };
}
const answer = (id: string, body: unknown) => api.call('POST /api/workitems/{id}/answer', { params: { id }, body });

it('a work item is listed with its form, and read with its input', async () => {
  const { execution, id } = await asked();
  const { items, next, total } = await api.call('GET /api/workitems', { query: { execution } });
  expect([items.length, next, total]).toEqual([1, null, total]);
  expect(items[0]).toEqual({
    id,
    execution,
    flow: 'asks',
    node: anyText,
    name: 'approve',
    title: 'Approve 5?',
    assignee: 'meg',
    team: null,
    form: [
      { name: 'approved', type: 'boolean', label: 'Approve it?', required: true, choices: [] },
      { name: 'comment', type: 'text', label: 'comment', required: false, choices: [] },
      { name: 'size', type: 'choice', label: 'size', required: false, choices: ['s', 'm'] },
      { name: 'count', type: 'integer', label: 'count', required: false, choices: [], default: 1 },
    ],
    due_at: anyText,
    claimed_by: null,
    claimed_until: null,
    created_at: anyText,
  });
  expect(await api.call('GET /api/workitems/{id}', { params: { id } })).toEqual({ ...items[0], input: { amount: 5 } });
});

it("work items are listed a page at a time, by assignee, and one's own", async () => {
  const who = newId();
  const ids = [await asked(who), await asked(who), await asked('somebody')].map(({ id }) => id);
  const list = async (query: object) => api.call('GET /api/workitems', { query });
  const first = await list({ assignee: who, limit: 1 });
  expect([first.items.map(({ id }) => id), first.next]).toEqual([[ids[0]], ids[0]]);
  const second = await list({ assignee: who, limit: 1, cursor: first.next });
  expect([second.items.map(({ id }) => id), second.next]).toEqual([[ids[1]], null]);
  await api.call('POST /api/workitems/{id}/claim', { params: { id: ids[2] ?? '' }, body: {} });
  const mine = await list({ mine: 'true' });
  expect(mine.items.map(({ id, claimed_by: by }) => [id, by])).toEqual([[ids[2], 'key:operator']]);
  const own = await asked('operator');
  expect((await list({ mine: 'true' })).items.map(({ id }) => id)).toContain(own.id);
});

it('long forms make short pages, and no item is left out', async () => {
  const who = newId();
  const form = { choice: Array.from({ length: 600 }, (_, i) => `${i}${'x'.repeat(1_000)}`) };
  await api.apply({
    flow: 'long',
    steps: [{ task: 't', human: { assignee: who, title: 'one', form }, timeout: '1d' }],
  });
  for (let i = 0; i < 3; i++) await api.launch('long');
  const seen: string[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await api.call('GET /api/workitems', { query: { assignee: who, ...(cursor && { cursor }) } });
    expect(page.items.length).toBeLessThan(3);
    seen.push(...page.items.map(({ id }) => id));
    cursor = page.next;
  }
  expect(new Set(seen).size).toBe(3);
});

it('an answer that does not fit the form is refused with every fault, and one that fits goes to the flow', async () => {
  const { execution, id } = await asked();
  const wrong = { comment: 5, size: 'xl', more: 1 };
  const refusedAnswer = await api.fetch('POST', `/api/workitems/${id}/answer`, {
    caller: keyOf('operator'),
    body: JSON.stringify(wrong),
  });
  expect(refusedAnswer.status).toBe(400);
  const { faults } = (await refusedAnswer.json()) as { faults: { path: string }[] };
  expect(faults.map(({ path }) => path).toSorted()).toEqual([
    'body.approved',
    'body.comment',
    'body.more',
    'body.size',
  ]);
  expect(await answer(id, { approved: true })).toEqual({ outcome: 'committed' });
  await api.reached(execution, 'done');
  const { fields } = await api.call('GET /api/executions/{id}', { params: { id: execution } });
  expect(fields['decision']).toEqual({ approved: true, count: 1 });
  await expect(answer(id, { approved: true })).rejects.toEqual(refusal(410));
  await expect(answer(newId(), {})).rejects.toEqual(refusal(404));
});

it('a task without a form takes any answer', async () => {
  const execution = await api.launch('free');
  const { items } = await api.call('GET /api/workitems', { query: { execution } });
  await answer(items[0]?.id ?? '', ['a', 1]);
  await api.reached(execution, 'done');
  const { fields } = await api.call('GET /api/executions/{id}', { params: { id: execution } });
  expect(fields['said']).toEqual(['a', 1]);
});

it('a claimed item is kept for one person, until it is released', async () => {
  const { id } = await asked();
  const claim = (who: string) =>
    api.call('POST /api/workitems/{id}/claim', { params: { id }, body: { for: who, seconds: 60 } });
  const claimed = await claim('ann');
  expect(claimed.claimed_by).toBe('ann');
  const seconds = (Date.parse(claimed.claimed_until ?? '') - Date.now()) / 1_000;
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThan(61);
  await expect(claim('bob')).rejects.toEqual(refusal(409));
  const released = await api.call('POST /api/workitems/{id}/release', { params: { id } });
  expect(released.claimed_by).toBeNull();
  expect((await claim('bob')).claimed_by).toBe('bob');
});
