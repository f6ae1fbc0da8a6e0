import { countHeld, holdErrands } from '../../../test/harness/errands.ts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { appendBusEvents, clientOf, countForReaders } from '../../../test/harness/bus-subscribers.ts';
import { keyOf, makeTenantApi, type TenantApi } from '../../../test/harness/tenant-api.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';

let api: TenantApi;
let caller: ReturnType<typeof clientOf>;
let call: TenantApi['call'];
beforeAll(async () => {
  api = await makeTenantApi();
});
beforeEach(async () => {
  await api.db.exec(sql`delete from subscriber`);
  await api.db.exec(sql`delete from errand`);
  caller = clientOf('shop');
  call = api.as(caller);
});
afterAll(() => api.close());

const callback = 'https://shop.example/events';
const subscribe = (body: object = {}) =>
  call('POST /bus/subscription', { body: { topics: ['orders'], callback, ...body } });
const pulling = (body: object = {}) =>
  call('POST /bus/subscription', { body: { topics: ['orders'], kind: 'pull', timeout: 0, ...body } });
const me = () => call('GET /bus/subscriber', {});
const publish = async (count: number, more: object = {}) => {
  const numbers = await appendBusEvents(
    api.db,
    Array.from({ length: count }, () => ({ topic: 'orders', at: new Date(Date.now() - 1_000), ...more })),
  );
  await countForReaders(api.db);
  return numbers;
};
const errands = () => api.db.rows<{ key: string; state: string }>(sql`select key, state from errand order by key`);
const statusOf = async (method: string, path: string, body?: object) =>
  (await api.fetch(method, path, { caller, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })).status;
const pull = async () => {
  const answer = await api.fetch('GET', '/bus/subscriber/batch', { caller });
  return answer.status === 204
    ? undefined
    : ((await answer.json()) as { id: string; lease: number; events: { id: string }[] });
};

describe('a subscription', () => {
  it('receives only events after it, and a change counts only from its number on', async () => {
    await subscribe();
    await publish(2);
    await call('PATCH /bus/subscriber', { body: { max: 7 } });
    await publish(1);
    const revisions = await api.db.rows<{ from_seq: number; max_events: number }>(sql`
      select from_seq, max_events from subscription order by from_seq`);
    expect(revisions.map((row) => row.max_events)).toEqual([100, 7]);
    expect((revisions[1]?.from_seq ?? 0) - (revisions[0]?.from_seq ?? 0)).toBe(2);
    expect((await me()).events).toMatchObject({ queued: 3, sent: 0 });
  });

  it('several strands imply the order by key, and a contradiction is rejected', async () => {
    await subscribe();
    expect(await call('PATCH /bus/subscriber', { body: { strands: 4 } })).toMatchObject({
      ordering: 'key',
      strands: 4,
    });
    expect((await me()).readers.map(({ strand }) => strand)).toEqual([0, 1, 2, 3]);
    expect(await statusOf('PATCH', '/bus/subscriber', { strands: 2, ordering: 'subscriber' })).toBe(400);
  });

  it('a filter with faults is rejected with their paths', async () => {
    await subscribe();
    const filter = { 'data.a': { $near: 1 }, colour: 'red' };
    const answer = await api.fetch('PATCH', '/bus/subscriber', { caller, body: JSON.stringify({ filter }) });
    const { faults } = (await answer.json()) as { faults: { path: string }[] };
    expect([answer.status, faults.map(({ path }) => path).toSorted()]).toEqual([
      400,
      ['body.filter.colour', 'body.filter["data.a"]["$near"]'],
    ]);
  });

  it('a topic of Millrace that exists can be subscribed to, and another cannot', async () => {
    await subscribe({ topics: ['millrace_runs'] });
    expect(await errands()).toEqual([{ key: '["relay",[]]', state: 'r' }]);
    expect(await statusOf('POST', '/bus/subscription', { topics: ['millrace_x'], callback })).toBe(400);
  });

  it('each change is in the lifecycle log, without the user name', async () => {
    await subscribe({ uuid: 'a secret name' });
    await call('POST /bus/subscriber/pause', { body: { reason: 'deploying' } });
    const { id } = await me();
    const rows = await api.db.rows<{ type: string; actor: string; body: string }>(sql`
      select type, actor, body from event where subject = ${id} order by seq`);
    expect(rows.map(({ type, actor }) => [type, actor])).toEqual([
      ['subscriber.created', 'key:shop'],
      ['subscriber.paused', 'key:shop'],
    ]);
    expect(JSON.stringify(rows)).not.toContain('a secret name');
  });

  it('an operator gives a subscriber to another key, unless that key has one', async () => {
    await subscribe();
    const { id, subscriber } = await me();
    const heir = clientOf('heir');
    const body = { identity: heir.identity.id };
    expect(await api.call('PUT /bus/subscribers/{id}/owner', { params: { id: subscriber }, body })).toMatchObject({
      id,
      owner: heir.identity.id,
    });
    await subscribe();
    const mine = await me();
    const again = await api.fetch('PUT', `/bus/subscribers/${mine.id}/owner`, {
      caller: keyOf('operator'),
      body: JSON.stringify(body),
    });
    expect(again.status).toBe(409);
  });

  it('removing a subscriber removes its readers and errands', async () => {
    await subscribe();
    await publish(1);
    await call('POST /bus/subscriber/resume', { body: {} });
    expect(await errands()).toHaveLength(1);
    await call('DELETE /bus/subscriber', {});
    expect(await errands()).toEqual([]);
    expect(await api.db.rows(sql`select from reader`)).toEqual([]);
  });
});

describe('pause and resume', () => {
  it('a paused subscriber keeps its events, and its errand returns when it resumes', async () => {
    await subscribe();
    expect(await call('POST /bus/subscriber/pause', { body: {} })).toMatchObject({
      state: 'paused',
      reason: 'paused by key:shop',
    });
    await publish(3);
    expect(await errands()).toEqual([]);
    const resumed = await call('POST /bus/subscriber/resume', { body: {} });
    expect(resumed).toMatchObject({ state: 'active', reason: null, events: { queued: 3 } });
    expect(await errands()).toEqual([{ key: `["deliver",["${resumed.id}",0]]`, state: 'r' }]);
  });

  it('resuming from now skips what is queued, and what no courier has counted yet', async () => {
    await subscribe();
    await publish(2);
    const [last] = await appendBusEvents(api.db, [{ topic: 'orders' }]);
    const resumed = await call('POST /bus/subscriber/resume', { body: { from: 'now' } });
    expect(resumed.events.queued).toBe(0);
    expect(resumed.readers[0]?.position).toBe(String(last));
    await countForReaders(api.db);
    expect((await me()).events.queued).toBe(0);
    await publish(1);
    expect((await me()).events.queued).toBe(1);
  });

  it('resuming from a number or a time rewinds, and counts exactly what the filter admits', async () => {
    await subscribe({ strands: 2 });
    await appendBusEvents(api.db, [{ topic: 'orders', at: new Date('2027-01-01T00:00:00Z') }]);
    const [first] = await publish(1, { data: { n: 1 }, hash: 0, at: new Date('2027-01-02T00:00:00Z') });
    await publish(1, { data: { n: 2 }, hash: 1, at: new Date('2027-01-03T00:00:00Z') });
    await publish(1, { data: { n: 3 }, hash: -1, at: new Date('2027-01-04T00:00:00Z') });
    const queuedOf = async (from: string) =>
      (await call('POST /bus/subscriber/resume', { body: { from } })).readers.map(({ queued }) => queued);
    expect(await queuedOf('now')).toEqual([0, 0]);
    expect(await queuedOf(String(first))).toEqual([1, 2]);
    expect(await queuedOf('2027-01-03T00:00:00Z')).toEqual([0, 2]);
    await call('PATCH /bus/subscriber', { body: { filter: { 'data.n': { $lte: 2 } } } });
    expect(await queuedOf(String(first))).toEqual([1, 1]);
  });

  it('moving takes the errand from its courier', async () => {
    await subscribe();
    await publish(1);
    await call('POST /bus/subscriber/resume', { body: {} });
    const worker = newId();
    await holdErrands(api.db, worker);
    expect(await countHeld(api.db, worker)).toBe(1);
    await call('POST /bus/subscriber/resume', { body: { from: '1' } });
    expect(await countHeld(api.db, worker)).toBe(0);
    expect(await api.db.rows(sql`select state from errand`)).toEqual([{ state: 'r' }]);
  });
});

describe('signing secrets', () => {
  it('two are valid while one is replaced, and none is shown again', async () => {
    await subscribe();
    const first = await call('POST /bus/subscriber/secret', { body: {} });
    expect(first).toEqual({ secret: expect.stringMatching(/^whsec_[\w+/]{43}=$/) as string, valid: 1 });
    expect((await call('POST /bus/subscriber/secret', { body: {} })).valid).toBe(2);
    expect((await call('POST /bus/subscriber/secret', { body: { secret: first.secret } })).valid).toBe(2);
    expect(JSON.stringify(await me())).not.toContain('whsec_');
    await call('DELETE /bus/subscriber/secret', {});
    const { secrets } = await api.db.one<{ secrets: Buffer[] }>(sql`select secrets from subscriber`);
    expect(secrets.map((sealed) => `whsec_${api.ctx.secrets.decrypt(sealed).toString('base64')}`)).toEqual([
      first.secret,
    ]);
    expect(await statusOf('POST', '/bus/subscriber/secret', { secret: 'whsec_c2hvcnQ=' })).toBe(400);
  });
});

describe('pull', () => {
  it('hands out batches in order under the ids that a courier would use', async () => {
    await pulling({ max: 2 });
    const numbers = await publish(3);
    const first = await pull();
    const { id } = await me();
    expect(first?.id).toBe(`${id.slice(-8)}_0_${numbers[0]}_${numbers[1]}`);
    expect(first?.events.map((event) => event.id)).toEqual([String(numbers[0]), String(numbers[1])]);
    expect(await pull()).toBeUndefined();
    await call('POST /bus/subscriber/batch/{id}/ack', { params: { id: first?.id ?? '' }, body: {} });
    const second = await pull();
    expect(second?.events.map((event) => event.id)).toEqual([String(numbers[2])]);
    await call('POST /bus/subscriber/batch/{id}/ack', { params: { id: second?.id ?? '' }, body: {} });
    expect((await me()).events).toEqual({ sent: 3, queued: 0, oldest: null });
    expect(await errands()).toEqual([]);
  });

  it('a batch whose lease has ended is handed out again with the same events, and the old lease is refused', async () => {
    await pulling();
    await publish(2);
    const first = await pull();
    api.advance(30_001);
    await publish(1);
    const second = await pull();
    expect(second).toMatchObject({ id: first?.id, events: first?.events, lease: 2 });
    const ack = (lease?: number) =>
      statusOf('POST', `/bus/subscriber/batch/${first?.id}/ack`, lease === undefined ? {} : { lease });
    expect(await ack(1)).toBe(409);
    expect(await ack(2)).toBe(204);
    expect(await ack()).toBe(409);
    expect((await me()).events).toMatchObject({ sent: 2, queued: 1 });
  });

  it('a batch that was given back is handed out again, after its delay', async () => {
    await pulling();
    await publish(1);
    const first = await pull();
    expect(await statusOf('POST', `/bus/subscriber/batch/${first?.id}/nack`, { delay: 60_000 })).toBe(204);
    expect(await pull()).toBeUndefined();
    api.advance(60_001);
    expect((await pull())?.id).toBe(first?.id);
    expect(await statusOf('POST', `/bus/subscriber/batch/${first?.id}/extend`, {})).toBe(200);
  });

  it('a batch handed out max_attempts times becomes a dead letter', async () => {
    await pulling({ max_attempts: 1, max: 1 });
    const [one, two] = await publish(2);
    const first = await pull();
    api.advance(30_001);
    expect(await pull()).toBeUndefined();
    expect((await pull())?.events.map(({ id }) => id)).toEqual([String(two)]);
    const { items } = await call('GET /bus/dead_letters', {});
    expect(items).toEqual([expect.objectContaining({ batch: first?.id, events: 1, code: 'not_acknowledged' })]);
    const letter = await call('GET /bus/dead_letters/{id}', { params: { id: items[0]?.id ?? '' } });
    expect(letter.body?.map(({ id }) => id)).toEqual([String(one)]);
  });

  it('a subscriber changes between pull and push without losing its position', async () => {
    await pulling();
    await publish(2);
    await pull();
    await call('PATCH /bus/subscriber', { body: { kind: 'http', callback } });
    expect(await errands()).toHaveLength(1);
    expect(await statusOf('GET', '/bus/subscriber/batch')).toBe(409);
    await call('PATCH /bus/subscriber', { body: { kind: 'pull' } });
    expect(await errands()).toEqual([]);
    expect((await pull())?.events).toHaveLength(2);
  });
});

describe('dead letters and replays', () => {
  const bury = async (subscriber: string, body: string | null = '[]') => {
    const id = newId();
    await api.db.exec(sql`
      insert into dead_letter (id, subscriber_id, batch, first_seq, last_seq, events, body, code, attempts, at)
      values (${id}, ${subscriber}, ${`b_${id}`}, 5, 6, 2, ${body}, 'timeout', 3, ${new Date()})`);
    return id;
  };

  it('a client sees and changes only its own; an operator those of the subscriber that it names', async () => {
    await subscribe();
    const letter = await bury((await me()).id);
    const other = clientOf('other');
    const path = `/bus/dead_letters/${letter}`;
    expect((await api.fetch('GET', path, { caller: other })).status).toBe(404);
    expect((await api.fetch('DELETE', '/bus/dead_letters', { caller: keyOf('operator') })).status).toBe(400);
    expect((await api.call('GET /bus/dead_letters', {})).items.map(({ id }) => id)).toEqual([letter]);
    const { subscriber } = await me();
    expect(await api.call('DELETE /bus/dead_letters', { query: { subscriber } })).toEqual({ deleted: 1 });
  });

  it('a dead letter is replayed over its own range; one without events cannot be', async () => {
    await subscribe();
    const { id } = await me();
    const letter = await bury(id);
    const replay = await call('POST /bus/dead_letters/{id}/replay', { params: { id: letter } });
    expect(await call('GET /bus/subscriber/replays/{id}', { params: replay })).toMatchObject({
      from: '4',
      to: '6',
      only_undelivered: true,
      state: 'running',
    });
    expect(await errands()).toEqual([{ key: `["replay",["${replay.id}"]]`, state: 'r' }]);
    expect(await statusOf('POST', `/bus/dead_letters/${await bury(id, null)}/replay`)).toBe(409);
  });

  it('a replay is cancelled once', async () => {
    await subscribe();
    await publish(2);
    const { id } = await call('POST /bus/subscriber/replays', { body: { from: '1' } });
    await call('DELETE /bus/subscriber/replays/{id}', { params: { id } });
    expect(await errands()).toEqual([]);
    expect(await statusOf('DELETE', `/bus/subscriber/replays/${id}`)).toBe(409);
    expect((await call('GET /bus/subscriber/replays', {})).items).toMatchObject([{ id, state: 'cancelled' }]);
  });
});

describe('GET /bus/events', () => {
  it('returns a page by number and topic, without events for another subscriber', async () => {
    await subscribe({ topics: ['orders', 'other'] });
    const { id } = await me();
    const [start] = await publish(1);
    const [, theirs] = await publish(2, { topic: 'other' });
    const [target] = await publish(1, { target: id });
    const after = String(start);
    const all = await call('GET /bus/events', { query: { after } });
    expect(all.items.map((event) => event.id).slice(-2)).toEqual([String(theirs), String(target)]);
    expect(all.next).toBe(String(target));
    const page = await api.as(clientOf('x'))('GET /bus/events', { query: { after, topics: 'orders' } });
    expect(page).toEqual({ items: [], next: String(target) });
  });
});

describe('export and import', () => {
  it('copies subscribers with their credentials, if the passphrase is right', async () => {
    await subscribe({ uuid: 'user', filter: { type: 'update' } });
    await call('POST /bus/subscriber/secret', { body: {} });
    const before = await me();
    const passphrase = 'correct horse battery';
    const exported = await api.call('POST /bus/export', { body: { passphrase } });
    expect(JSON.stringify(exported)).not.toContain('user"');
    expect((await api.call('GET /bus/export', {})).subscribers[0]?.sealed).toBeNull();
    await call('DELETE /bus/subscriber', {});
    const wrong = JSON.stringify({ ...exported, passphrase: 'something else' });
    expect((await api.fetch('POST', '/bus/import', { caller: keyOf('operator'), body: wrong })).status).toBe(400);
    const result = await api.call('POST /bus/import', { body: { ...exported, passphrase } });
    expect(result).toMatchObject({ subscribers: 1, skipped: [] });
    const { id: _, readers: _readers, created_at: _at, ...rest } = await me();
    expect(rest).toEqual(
      expect.objectContaining({ subscriber: before.subscriber, uuid: 'user', secrets: 1, filter: before.filter }),
    );
    const again = await api.call('POST /bus/import', { body: exported });
    expect(again).toMatchObject({ subscribers: 0, skipped: [before.subscriber] });
  });
});

describe('GET /api/explain/delivery', () => {
  const why = async (id?: string) => call('GET /api/explain/delivery/{id}', { params: { id: id ?? (await me()).id } });

  it('names the pause and who did it, the retry with the last answer, and the lag', async () => {
    await subscribe();
    expect((await why()).state).toBe('idle');
    await publish(2);
    await call('POST /bus/subscriber/resume', { body: {} });
    expect((await why()).reasons.map(({ code }) => code)).toEqual(['ready', 'lag']);
    const { id } = await me();
    await api.db.exec(sql`
      update errand set state = 's', run_at = '2030-01-01T00:00:00Z', reason = 'the receiver answered 500'`);
    await api.db.exec(sql`update reader set attempts = 3`);
    await api.db.exec(sql`
      insert into delivery (subscriber_id, at, batch, attempt, events, status, ms)
      values (${id}, ${new Date()}, 'x', 3, 2, 500, 7)`);
    const retry = await why();
    expect(retry.state).toBe('retrying');
    expect(retry.summary).toContain('the receiver answered 500; attempt 4 follows at 2030-01-01T00:00:00.000Z');
    await call('POST /bus/subscriber/pause', { body: {} });
    expect(await why()).toMatchObject({ state: 'stopped', summary: expect.stringContaining('by key:shop') as string });
  });

  it('a client cannot ask about the subscriber of another', async () => {
    await subscribe();
    const { id } = await me();
    const other = clientOf('other');
    await api.as(other)('POST /bus/subscription', { body: { topics: [], callback } });
    expect((await api.fetch('GET', `/api/explain/delivery/${id}`, { caller: other })).status).toBe(404);
  });
});
