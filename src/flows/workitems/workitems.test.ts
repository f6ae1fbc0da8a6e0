/** Work items: lists, claims that expire, and answers that reach the execution once. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { inboxOf, makeExecution } from '../../../test/harness/node-runs.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { type ItemPlan, makeItem } from '../../../test/harness/workitems.ts';
import type { Delivered, FlowMessage } from '../../contract/flow-messages.ts';
import type { EngineContext } from '../../contract/context.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { answerWorkitem, claimWorkitem, listWorkitems, readWorkitem, releaseWorkitem } from './workitems.ts';

let api: TenantApi;
beforeAll(async () => {
  api = await makeTenantApi();
});
afterAll(() => api.close());
afterEach(() => api.db.exec(sql`delete from workitem`));

const now = (): Date => new Date(api.ctx.time.now());
const execute = (): Promise<string> => makeExecution(api.db, now());
const make = async (plan: Partial<ItemPlan> = {}): Promise<string> =>
  makeItem(api.db, now(), { execution: plan.execution ?? (await execute()), ...plan });
const list = async (filter: object): Promise<string[]> =>
  (await listWorkitems(api.ctx, { limit: 100, ...filter })).items.map(({ id }) => id);
const meg = { actor: 'key:meg', isOperator: false };
const bob = { actor: 'key:bob', isOperator: false };
const code = (wanted: string) => expect.objectContaining({ code: wanted }) as unknown;

/** A context with a conductor that answers like this. */
function withConductor(outcome: Delivered['outcome'], sent: FlowMessage[] = []): EngineContext {
  const deliver = async (_: string, messages: readonly FlowMessage[]): Promise<Delivered[]> => {
    sent.push(...messages);
    return messages.map(({ id, execution }) => ({ id, execution, outcome, detail: 'said the conductor' }));
  };
  return { ...api.ctx, conductors: { deliver, hint: () => {} } };
}

describe('lists', () => {
  it('have those that wait, the oldest first, by assignee, team, execution, and a page at a time', async () => {
    const execution = await execute();
    const first = await make({ execution, nid: '0_1' });
    const second = await make({ execution, nid: '0_2', assignee: 'bob' });
    const third = await make({ assignee: null, team: 'leads' });
    await make({ execution, nid: '0_3', ended: true });
    expect(await list({})).toEqual([first, second, third]);
    expect(await list({ assignee: 'bob' })).toEqual([second]);
    expect(await list({ team: 'leads' })).toEqual([third]);
    expect(await list({ execution })).toEqual([first, second]);
    expect(await list({ limit: 1 })).toEqual([first]);
    expect(await list({ cursor: first, limit: 1 })).toEqual([second]);
  });

  it('`mine` has what is assigned to one of the names, or claimed now', async () => {
    const assigned = await make({ assignee: 'meg' });
    const claimed = await make({ assignee: null, team: 'leads' });
    await make({ assignee: 'bob' });
    await claimWorkitem(api.ctx, claimed, 'key:meg');
    const mine = { actor: 'key:meg', names: ['meg', 'key:meg'] };
    expect(await list({ mine })).toEqual([assigned, claimed]);
    api.advance(3_600_000);
    expect(await list({ mine })).toEqual([assigned]);
  });
});

describe('claims', () => {
  it('last for an hour, can be renewed, and keep others from claiming', async () => {
    const id = await make();
    const beforeMs = api.ctx.time.now();
    const { claimedBy, claimedUntil } = await claimWorkitem(api.ctx, id, 'key:meg');
    expect(claimedBy).toBe('key:meg');
    expect((claimedUntil?.getTime() ?? 0) - beforeMs).toBeGreaterThanOrEqual(3_600_000);
    await expect(claimWorkitem(api.ctx, id, 'key:bob')).rejects.toEqual(code('conflict'));
    api.advance(1_600_000);
    await claimWorkitem(api.ctx, id, 'key:meg');
    // beyond the first hour, and within the second one, however slow this machine is
    api.advance(2_000_000);
    expect((await readWorkitem(api.ctx, id)).claimedBy).toBe('key:meg');
    await expect(claimWorkitem(api.ctx, id, 'key:bob')).rejects.toEqual(code('conflict'));
    api.advance(1_800_000);
    expect(await readWorkitem(api.ctx, id)).toMatchObject({ claimedBy: null, claimedUntil: null });
    expect((await claimWorkitem(api.ctx, id, 'key:bob')).claimedBy).toBe('key:bob');
  });

  it('one of many who claim at once gets it', async () => {
    const id = await make();
    const claims = ['a', 'b', 'c', 'd'].map((name) => claimWorkitem(api.ctx, id, name));
    const settled = await Promise.allSettled(claims);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('are released by their claimer only; releasing nothing changes nothing', async () => {
    const id = await make();
    expect((await releaseWorkitem(api.ctx, id, 'key:bob')).claimedBy).toBeNull();
    await claimWorkitem(api.ctx, id, 'key:meg');
    await expect(releaseWorkitem(api.ctx, id, 'key:bob')).rejects.toEqual(code('conflict'));
    expect((await releaseWorkitem(api.ctx, id, 'key:meg')).claimedBy).toBeNull();
    expect((await claimWorkitem(api.ctx, id, 'key:bob')).claimedBy).toBe('key:bob');
  });
});

describe('answers', () => {
  it('reach the execution with node, attempt, actor and the checked answer', async () => {
    const execution = await execute();
    const id = await make({ execution, nid: '0_4-9', attempt: 2 });
    const sent: FlowMessage[] = [];
    expect(await answerWorkitem(withConductor('committed', sent), id, { approved: true, comment: null }, meg)).toEqual({
      outcome: 'committed',
    });
    expect(sent).toMatchObject([
      {
        id: 'answer/0_4-9/2',
        execution,
        point: 'answer',
        actor: 'key:meg',
        body: {
          point: 'answer',
          nid: '0_4-9',
          attempt: 2,
          outcome: { kind: 'done', result: { approved: true } },
        },
      },
    ]);
  });

  it('are stored if there is no conductor, and then count as given', async () => {
    const execution = await execute();
    const id = await make({ execution });
    expect(await answerWorkitem(api.ctx, id, { approved: true }, meg)).toMatchObject({ outcome: 'accepted' });
    expect(await inboxOf(api.db, execution)).toMatchObject([
      { id: 'answer/0_1-2/1', body: { point: 'answer', actor: 'key:meg', body: { nid: '0_1-2', attempt: 1 } } },
    ]);
    await expect(answerWorkitem(api.ctx, id, { approved: false }, meg)).rejects.toEqual(code('gone'));
    expect((await inboxOf(api.db, execution))[0]?.body.body.outcome).toEqual({
      kind: 'done',
      result: { approved: true },
    });
  });

  it('that a conductor has stored are accepted, with its detail', async () => {
    expect(await answerWorkitem(withConductor('accepted'), await make(), {}, meg)).toEqual({
      outcome: 'accepted',
      detail: 'said the conductor',
    });
  });

  it.each(['known', 'refused', 'gone'] as const)('that are %s come too late', async (outcome) => {
    await expect(answerWorkitem(withConductor(outcome), await make(), {}, meg)).rejects.toEqual(code('gone'));
  });

  it('that do not fit are rejected with the path of each fault, and nothing is sent', async () => {
    const sent: FlowMessage[] = [];
    const answer = answerWorkitem(withConductor('committed', sent), await make(), { approved: 'yes', more: 1 }, meg);
    await expect(answer).rejects.toMatchObject({
      code: 'bad_request',
      faults: [{ path: 'body.more' }, { path: 'body.approved' }],
    });
    expect(sent).toEqual([]);
  });

  it('are for the claimer and for operators while there is a claim', async () => {
    const id = await make();
    await claimWorkitem(api.ctx, id, 'key:meg');
    const ctx = withConductor('committed');
    await expect(answerWorkitem(ctx, id, {}, bob)).rejects.toEqual(code('conflict'));
    await expect(answerWorkitem(ctx, id, {}, { actor: null, isOperator: false })).rejects.toEqual(code('conflict'));
    expect(await answerWorkitem(ctx, id, {}, meg)).toEqual({ outcome: 'committed' });
    expect(await answerWorkitem(ctx, id, {}, { ...bob, isOperator: true })).toEqual({ outcome: 'committed' });
    api.advance(3_600_000);
    expect(await answerWorkitem(ctx, id, {}, bob)).toEqual({ outcome: 'committed' });
  });

  it('and claims of an item that has ended are gone; of one that never was they are not found', async () => {
    const ended = await make({ ended: true });
    const outcomes = async (id: string): Promise<unknown[]> => {
      const settled = await Promise.allSettled([
        readWorkitem(api.ctx, id),
        claimWorkitem(api.ctx, id, 'key:meg'),
        releaseWorkitem(api.ctx, id, 'key:meg'),
        answerWorkitem(api.ctx, id, {}, meg),
      ]);
      return settled.map((each) => (each.status === 'rejected' ? each.reason : each.value) as unknown);
    };
    expect(await outcomes(ended)).toEqual(Array(4).fill(code('gone')));
    expect(await outcomes(newId())).toEqual(Array(4).fill(code('not_found')));
  });
});
