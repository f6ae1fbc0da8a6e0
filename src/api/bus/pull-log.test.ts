/** What the API tells of batches that consumers pull, and of events that the limit by bytes has dropped. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { appendBusEvents, clientOf, countForReaders } from '../../../test/harness/bus-subscribers.ts';
import { textWith } from '../../../test/harness/expected.ts';
import { makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { sql } from '../../kernel/sql.ts';
import { newId } from '../../kernel/id.ts';

let api: TenantApi;
let caller: ReturnType<typeof clientOf>;
let call: TenantApi['call'];
beforeAll(async () => {
  api = await makeTenantApi();
});
beforeEach(async () => {
  await api.db.exec(sql`delete from subscriber`);
  await api.db.exec(sql`delete from delivery`);
  caller = clientOf('shop');
  call = api.as(caller);
  await call('POST /bus/subscription', { body: { topics: ['orders'], kind: 'pull', timeout: 0, max: 2 } });
});
afterAll(() => api.close());

const publish = async (count: number) => {
  await appendBusEvents(
    api.db,
    Array.from({ length: count }, () => ({ topic: 'orders', at: new Date(Date.now() - 1_000) })),
  );
  await countForReaders(api.db);
};
const pull = async () =>
  (await (await api.fetch('GET', '/bus/subscriber/batch', { caller })).json()) as { id: string; lease: number };
const log = async (query: object = {}) =>
  (await call('GET /bus/subscriber/deliveries', { query })).items.map(({ code, batch, attempt, events }) => ({
    code,
    batch,
    attempt,
    events,
  }));

describe('the delivery log of a subscriber that pulls', () => {
  it('has a row when a batch is handed out, given back, expires and is acknowledged', async () => {
    await publish(2);
    const { id: batch } = await pull();
    await call('POST /bus/subscriber/batch/{id}/nack', { params: { id: batch }, body: {} });
    await pull();
    // as if its time were over
    await api.db.exec(sql`update reader set leased_until = leased_until - interval '1 minute'`);
    const { lease } = await pull();
    await call('POST /bus/subscriber/batch/{id}/ack', { params: { id: batch }, body: { lease } });
    const of = (code: string, attempt: number) => ({ code, batch, attempt, events: 2 });
    // newest first; a lease expired when its time was over
    const rows = await log();
    expect(rows.filter(({ code }) => code !== 'lease_expired')).toEqual([
      of('acked', 3),
      of('handed_out', 3),
      of('handed_out', 2),
      of('nacked', 1),
      of('handed_out', 1),
    ]);
    expect(await log({ failed: true })).toEqual(expect.arrayContaining([of('nacked', 1), of('lease_expired', 2)]));
    expect(await log({ failed: true })).toHaveLength(2);
  });

  it('has no row of an acknowledgement that had no effect', async () => {
    await publish(2);
    const { id: batch } = await pull();
    const path = `/bus/subscriber/batch/${batch}/ack`;
    const old = await api.fetch('POST', path, { caller, body: JSON.stringify({ lease: 7 }) });
    expect(old.status).toBe(409);
    await call('POST /bus/subscriber/batch/{id}/ack', { params: { id: batch }, body: {} });
    expect((await api.fetch('POST', path, { caller, body: '{}' })).status).toBe(409);
    expect((await log()).map(({ code }) => code)).toEqual(['acked', 'handed_out']);
  });

  it.each(['ack', 'nack', 'lease'])('has at most 2,147,483,647 ms, also if the %s comes a year later', async (end) => {
    await publish(2);
    const { id } = await pull();
    await api.db.exec(sql`update reader set leased_at = leased_at - interval '1 year'`);
    if (end === 'lease') {
      // as if its time were over
      await api.db.exec(sql`update reader set leased_until = leased_until - interval '1 minute'`);
      await pull();
    } else {
      const path = `/bus/subscriber/batch/${id}/${end}`;
      expect((await api.fetch('POST', path, { caller, body: '{}' })).status).toBeLessThan(300);
    }
    const rows = await api.db.rows(sql`select code from delivery where ms = 2147483647`);
    expect(rows).toEqual([{ code: { ack: 'acked', nack: 'nacked', lease: 'lease_expired' }[end] }]);
  });

  it('keeps at most 100 successes a second, and every failure', async () => {
    await publish(2);
    for (let times = 0; times < 150; times++) {
      const { id } = await pull();
      await call('POST /bus/subscriber/batch/{id}/nack', { params: { id }, body: {} });
    }
    const rows = await api.db.rows<{ code: string; n: number; second: Date }>(sql`
      select code, date_trunc('second', at) as second, count(*)::integer as n from delivery group by 1, 2`);
    for (const { code, n } of rows) if (code === 'handed_out') expect(n).toBeLessThanOrEqual(100);
    const nacked = rows.filter(({ code }) => code === 'nacked').reduce((sum, { n }) => sum + n, 0);
    expect(nacked).toBe(150);
  });
});

describe('events that the limit by bytes has dropped', () => {
  it('are shown with the subscriber, and explain why a batch in the gap will not arrive', async () => {
    const { id, subscriber } = await call('GET /bus/subscriber', {});
    expect((await call('GET /bus/subscriber', {})).dropped).toBeNull();
    const digits = id.slice(-8);
    const at = new Date('2026-11-18T12:00:00Z');
    await api.db.exec(sql`
      insert into dead_letter (id, subscriber_id, batch, first_seq, last_seq, events, code, attempts, at)
      values (${newId()}, ${id}, ${`${digits}_0_11_20`}, 11, 20, 7, 'dropped', 0, ${at})`);
    const dropped = { events: 7, first: '11', last: '20', at: at.toISOString() };
    expect((await call('GET /bus/subscriber', {})).dropped).toEqual(dropped);
    const explain = async (what: string) => {
      const { state, reasons } = await call('GET /api/explain/delivery/{id}', { params: { id: what } });
      return { state, reasons };
    };
    const message = textWith('7 events between 11 and 20 were dropped');
    expect(await explain(subscriber)).toMatchObject({
      reasons: expect.arrayContaining([expect.objectContaining({ code: 'dropped', message })]) as unknown,
    });
    await api.db.exec(sql`update reader set pos = 20`);
    expect(await explain(`${digits}_0_12_15`)).toMatchObject({ state: 'given_up', reasons: [{ code: 'dropped' }] });
    expect(await explain(`${digits}_0_1_9`)).toMatchObject({ state: 'delivered' });
  });
});
