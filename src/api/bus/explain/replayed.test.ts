/** Explanations of batches whose id names terms and no strand. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { clientOf } from '../../../../test/harness/bus-subscribers.ts';
import { makeTenantApi, type TenantApi } from '../../../../test/harness/tenant-api.ts';
import { newId } from '../../../kernel/id.ts';
import { sql } from '../../../kernel/sql.ts';

let api: TenantApi;
let subscriber: string;
let batch: string;
beforeAll(async () => {
  api = await makeTenantApi();
  const call = api.as(clientOf('billing'));
  await call('POST /bus/subscription', {
    body: { topics: ['orders'], callback: 'https://example.com/', uuid: 'billing' },
  });
  subscriber = (await call('GET /bus/subscriber', {})).id;
  batch = `${subscriber.slice(-8)}_r16_2_15`;
});
beforeEach(async () => {
  await api.db.exec(sql`delete from replay`);
  await api.db.exec(sql`delete from delivery`);
  await api.db.exec(sql`update reader set pos = 0`);
});
afterAll(() => api.close());

async function replay(state: string, pos: number, attempts = 0): Promise<string> {
  const id = newId();
  await api.db.exec(sql`
    insert into replay (id, subscriber_id, from_seq, to_seq, pos, attempts, state, by, at)
    values (${id}, ${subscriber}, 0, 100, ${pos}, ${attempts}, ${state}, 'tests', ${new Date()})`);
  return id;
}

async function why() {
  const { state, reasons } = await api.call('GET /api/explain/delivery/{id}', { params: { id: batch } });
  return { state, code: reasons[0]?.code, message: reasons[0]?.message };
}

it('a batch of a replay is explained by how far the replay has come', async () => {
  const first = await replay('running', 1);
  expect(await why()).toMatchObject({ state: 'waiting', code: 'replay_under_way' });
  await api.db.exec(sql`update replay set attempts = 3`);
  await api.db.exec(sql`
    insert into errand (queue, key, state, run_at, reason)
    values ('main', ${`["replay",["${first}"]]`}, 's', '2030-01-01T00:00:00Z', 'the receiver answered 500')`);
  expect(await why()).toEqual({
    state: 'retrying',
    code: 'replay_under_way',
    message: `replay ${first} has failed 3 times after 1 (the receiver answered 500); attempt 4 follows at 2030-01-01T00:00:00.000Z`,
  });
  await api.db.exec(sql`update replay set pos = 15, attempts = 0`);
  expect(await why()).toMatchObject({ state: 'delivered', message: `replay ${first} delivered it` });
});

it('a replay that ended before the batch is named, unless another one is running', async () => {
  await replay('cancelled', 1);
  expect(await why()).toMatchObject({ state: 'given_up', code: 'replay_ended' });
  await replay('running', 1);
  expect(await why()).toMatchObject({ state: 'waiting', code: 'replay_under_way' });
});

it('an accepted delivery under the id is enough, whoever sent it', async () => {
  await replay('cancelled', 1);
  await api.db.exec(sql`
    insert into delivery (subscriber_id, at, batch, attempt, events, status, ms)
    values (${subscriber}, ${new Date()}, ${batch}, 1, 14, 204, 7)`);
  expect(await why()).toMatchObject({ state: 'delivered', message: 'it was delivered' });
});

it('without a replay, the batch is one of the only strand, which was moved back', async () => {
  await api.db.exec(sql`update reader set pos = 15`);
  expect(await why()).toMatchObject({ state: 'delivered' });
  await api.db.exec(sql`update reader set pos = 1, queued = 14`);
  expect(await why()).toMatchObject({ state: 'waiting', code: expect.stringMatching('ready|no_courier') as string });
  await api.db.exec(sql`update reader set queued = 0`);
});
