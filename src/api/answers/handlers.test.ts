/** Answers by link: the token is the only credential, and is spent with its task. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { inboxOf, makeExecution, queueNodes } from '../../../test/harness/node-runs.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { makeItem } from '../../../test/harness/workitems.ts';
import { makeAnswerToken } from '../../flows/answer-token.ts';
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
const post = (token: string, body: unknown): Promise<Response> =>
  api.fetch('POST', `/answers/${token}`, { body: JSON.stringify(body) });

async function ask(more: object = {}): Promise<{ execution: string; token: string }> {
  const execution = await makeExecution(api.db, now());
  await makeItem(api.db, now(), { execution, input: { amount: 7 }, ...more });
  return { execution, token: tokenOf(execution) };
}

async function call(): Promise<{ execution: string; token: string }> {
  const execution = await makeExecution(api.db, now());
  const token = tokenOf(execution);
  const runtime = {
    kind: 'http',
    method: 'POST',
    url: 'https://a.test/',
    answer_url: `https://m.test/answers/${token}`,
  };
  await queueNodes(api.db, now(), [{ execution, ...place, runtime }]);
  return { execution, token };
}

describe('a human task', () => {
  it('shows title, form, name and input, and takes the object of the form', async () => {
    const { execution, token } = await ask();
    expect(await read(token)).toEqual([
      200,
      {
        title: 'Expense e1',
        form: { approved: 'boolean', comment: 'text' },
        flow: '',
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

  it('is gone once its step has ended, and for another attempt', async () => {
    const { token } = await ask({ ended: true });
    expect((await read(token))[0]).toBe(410);
    expect((await post(token, {})).status).toBe(410);
    const { execution } = await ask();
    expect((await read(tokenOf(execution, { attempt: 2 })))[0]).toBe(410);
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
    const { execution, token } = await call();
    expect(await read(token)).toMatchObject([200, { title: null, form: null, name: 'ship' }]);
    expect((await post(token, { paid: true })).status).toBe(202);
    expect(await inboxOf(api.db, execution)).toMatchObject([
      { body: { actor: null, body: { outcome: { kind: 'done', result: { paid: true } } } } },
    ]);
    expect((await read(token))[0]).toBe(410);
    expect((await post(token, 1)).status).toBe(410);
  });

  it('is gone when its execution has ended, or is no longer on record', async () => {
    const { execution, token } = await call();
    await api.db.exec(sql`update execution set status = 5 where id = ${execution}`);
    expect((await post(token, 1)).status).toBe(410);
    expect((await read(tokenOf(newId())))[0]).toBe(410);
  });
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
