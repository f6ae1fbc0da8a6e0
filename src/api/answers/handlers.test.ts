/** Answers by link: the token is the only credential, and is spent with its task. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreDriver, storeFlow } from '../../../test/harness/flows/store-driver.ts';
import { inboxOf, makeExecution } from '../../../test/harness/node-runs.ts';
import { claim, finish } from '../../../test/harness/runs.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { makeItem } from '../../../test/harness/workitems.ts';
import { makeAnswerToken } from '../../flows/answer-token.ts';
import { readExecution } from '../../flows/executions/stored.ts';
import { flowEngine } from '../../flows/flow-engine.ts';
import { makeSecrets } from '../../gateway/access/secrets.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());

const now = (): Date => new Date(api.ctx.time.now());
const place = { nid: '0_1-2', attempt: 1 };
const tokenOf = (execution: string, more: object = {}): string =>
  makeAnswerToken(api.ctx.secrets, { tenantId: api.ctx.tenant.id, execution, ...place, ...more }, api.ctx.time.now());
const read = async (token: string): Promise<[number, unknown]> => {
  const answer = await api.fetch('GET', `/answers/${token}`);
  return [answer.status, await answer.json()];
};
const member = ({ member: id }: StoreDriver) => ({ id, living: [id] });
const post = (token: string, body: unknown): Promise<Response> =>
  api.fetch('POST', `/answers/${token}`, { body: JSON.stringify(body) });

/** Ends the run of an execution, as its worker reports it. */
async function endRun(execution: string, state: string): Promise<void> {
  const { id } = await api.db.one<{ id: string }>(
    sql`select run_id as id from node_run where execution_id = ${execution}`,
  );
  await claim(api);
  await finish(api, [{ id, lease: 1 } as never], state);
}

async function ask(more: object = {}): Promise<{ execution: string; token: string }> {
  const execution = await makeExecution(api.db, now());
  await makeItem(api.db, now(), { execution, input: { amount: 7 }, ...more });
  return { execution, token: tokenOf(execution) };
}

/** An execution that waits for the answer to its request. */
async function call(): Promise<{ execution: string; token: string; driver: StoreDriver; nid: string }> {
  const driver = new StoreDriver({ ctx: api.ctx, engine: flowEngine });
  const http = { url: 'https://a.test/', callback: '1d' };
  await storeFlow(api.db, { flow: 'pay', steps: [{ task: 'charge', http, result: 'f.answer' }] });
  const execution = await driver.launch('pay');
  const [run] = await api.db.rows<{ nid: string }>(sql`select nid from node_run where execution_id = ${execution}`);
  const nid = run?.nid ?? '';
  return { execution, driver, nid, token: tokenOf(execution, { nid }) };
}

describe('a human task', () => {
  it('shows title, form, name and input, and takes the object of the form', async () => {
    const { execution, token } = await ask();
    expect(await read(token)).toEqual([
      200,
      {
        title: 'Expense e1',
        form: { approved: 'boolean', comment: 'text' },
        flow: expect.any(String) as string,
        name: 'approve',
        input: { amount: 7 },
        due_at: null,
        claimed_by: null,
        claimed_until: null,
      },
    ]);
    expect((await post(token, { approved: true })).status).toBe(202);
    expect(await inboxOf(api.db, execution)).toMatchObject([
      {
        id: 'answer/0_1-2/1',
        body: { actor: 'link', body: { outcome: { kind: 'done', result: { approved: true } } } },
      },
    ]);
    expect((await post(token, { approved: true })).status).toBe(410);
  });

  it('rejects an answer that does not fit, and takes the next one', async () => {
    const { token } = await ask();
    const wrong = await post(token, { approved: 'yes' });
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { faults: [{ path: 'body.approved' }] }]);
    expect((await post(token, { approved: false })).status).toBe(202);
  });

  it('is gone once its step has ended', async () => {
    const { token } = await ask({ ended: true });
    expect((await read(token))[0]).toBe(410);
    expect((await post(token, {})).status).toBe(410);
  });

  it('without a form takes any value', async () => {
    const { token, execution } = await ask({ form: {} });
    expect((await read(token))[1]).toMatchObject({ form: null });
    expect((await post(token, [1])).status).toBe(202);
    expect((await inboxOf(api.db, execution))[0]?.body.body.outcome).toEqual({ kind: 'done', result: [1] });
  });
});

describe('a callback', () => {
  it('shows the task and takes any JSON value, once', async () => {
    const { execution, token, driver, nid } = await call();
    expect(await read(token)).toMatchObject([200, { title: null, form: null, flow: 'pay', name: 'charge' }]);
    expect((await post(token, { paid: true })).status).toBe(202);
    expect(await inboxOf(api.db, execution)).toMatchObject([
      { id: `answer/${nid}/1`, body: { actor: null, body: { outcome: { kind: 'done', result: { paid: true } } } } },
    ]);
    expect((await read(token))[0]).toBe(410);
    expect((await post(token, 1)).status).toBe(410);
    await driver.drain();
    expect((await readExecution(api.ctx, execution))?.state).toMatchObject({
      ending: { kind: 'done' },
      f: { answer: { paid: true } },
    });
    expect((await read(token))[0]).toBe(410);
  });

  it('waits on after its request was taken, and for another attempt it is gone', async () => {
    const { execution, token, nid } = await call();
    await endRun(execution, 'success');
    expect(await inboxOf(api.db, execution)).toEqual([]);
    expect((await read(token))[0]).toBe(200);
    expect((await read(tokenOf(execution, { nid, attempt: 2 })))[0]).toBe(410);
    expect((await read(tokenOf(execution, { nid: '0' })))[0]).toBe(410);
  });

  it('is gone once its request has failed, its execution has ended, or is not on record', async () => {
    const { execution, token, driver } = await call();
    await endRun(execution, 'failure');
    expect((await post(token, 1)).status).toBe(410);
    await driver.drain();
    expect((await read(token))[0]).toBe(410);
    const other = await call();
    await other.driver.send(other.execution, { point: 'operate', operation: { action: 'kill', nid: null } });
    expect((await post(other.token, 1)).status).toBe(410);
    expect((await read(tokenOf(newId())))[0]).toBe(410);
  });

  it('that nobody answers in time fails its step, and is gone then', async () => {
    const { execution, token, driver } = await call();
    api.advance(25 * 3_600_000);
    for (const { name, generation } of await driver.engine.due(api.ctx, member(driver), api.ctx.time.now(), 10))
      await driver.send(execution, { point: 'timer', name, generation });
    expect((await read(token))[0]).toBe(410);
    const { state } = (await readExecution(api.ctx, execution)) ?? {};
    expect(Object.values(state?.nodes ?? {}).flatMap(({ error }) => error?.code ?? [])).toEqual(['timeout']);
  });
});

it('an item of a flow with sealed fields is shown by its link, and masked for viewers', async () => {
  const driver = new StoreDriver({ ctx: api.ctx, engine: flowEngine });
  const human = { assignee: 'meg', title: 'Card $(f.card)', form: { sealed: 'text' } };
  const step = { task: 'approve', with: { card: '$(f.card)' }, human };
  await storeFlow(api.db, { flow: 'secret', sealed: ['f.card'], steps: [step] });
  const execution = await driver.launch('secret', { card: 'no one' });
  const row = await api.db.one<{ id: string; nid: string; item: string }>(sql`
    select id, nid, row_to_json(w)::text as item from workitem w where execution_id = ${execution}`);
  expect(row.item).not.toContain('no one');
  expect(await read(tokenOf(execution, { nid: row.nid }))).toMatchObject([
    200,
    { title: 'Card no one', form: { sealed: 'text' }, input: { card: 'no one' } },
  ]);
  const params = { id: row.id };
  expect(await api.call('GET /api/workitems/{id}', { params })).toMatchObject({ title: 'Card no one' });
  const masked = await api.as(keyOf('viewer'))('GET /api/workitems/{id}', { params });
  expect(masked).toMatchObject({ title: 'approve', input: '•••', form: [{ name: 'sealed', type: 'text' }] });
});

describe('a token', () => {
  it('of another tenant, of another key or of nobody is not found', async () => {
    const { execution } = await ask();
    const claims = { tenantId: api.ctx.tenant.id, execution, ...place };
    const forged = makeAnswerToken(
      makeSecrets(['another key'], () => 0),
      claims,
      api.ctx.time.now(),
    );
    const foreign = makeAnswerToken(api.ctx.secrets, { ...claims, tenantId: newId() }, api.ctx.time.now());
    const credential = api.ctx.secrets.signRun({ tenant: api.ctx.tenant.id, run: newId(), lease: 1 });
    const cut = tokenOf(execution).slice(0, -1);
    for (const token of [forged, foreign, credential, cut, 'mra_', 'x', 'mra_e30.x'])
      expect([token, (await read(token))[0]]).toEqual([token, 404]);
  });

  it('is of use for a year', async () => {
    const { token } = await ask();
    api.advance(364 * 86_400_000);
    expect((await read(token))[0]).toBe(200);
    api.advance(3 * 86_400_000);
    expect((await read(token))[0]).toBe(404);
  });
});
