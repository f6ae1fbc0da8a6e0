/**
 * Faults of Routemaster that must be impossible here: a title begins with the fault as the reference names it (section 9.3).
 *
 * Elsewhere: the order in which retention removes events (`src/bus/retention/prune.test.ts`), the comparison of root keys and tokens
 * that are identities (`src/gateway/bus/api-tokens.test.ts`, `src/gateway/access`), slots for hosts that hang
 * (`src/courier/slots.test.ts`).
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { publish } from '../../src/bus/publish/publish.ts';
import { parseRanges } from '../../src/outbound/addresses.ts';
import { makeOutbound } from '../../src/courier/outbound.ts';
import { errandLimits } from '../../src/errands/contract.ts';
import { postgresErrands } from '../../src/errands/postgres.ts';
import { newId } from '../../src/kernel/id.ts';
import { type Db, sql } from '../../src/kernel/sql.ts';
import { many, TestBus } from '../harness/bus.ts';
import { type BusReceiver, makeBusReceiver } from '../harness/bus-receiver.ts';
import { clientOf } from '../harness/bus-subscribers.ts';
import { makeTenantApi, type TenantApi } from '../harness/tenant-api.ts';
import { until } from '../harness/until.ts';

describe('deliveries', () => {
  let bus: TestBus;
  let receiver: BusReceiver;
  beforeAll(async () => {
    bus = await TestBus.make();
    receiver = await makeBusReceiver();
    await bus.startCourier();
  });
  afterEach(() => {
    receiver.reply = () => 204;
  });
  afterAll(async () => {
    await bus?.close();
    await receiver?.close();
  });

  let topics = 0;
  /** A subscriber of a topic of its own, on a path of its own. */
  async function subscribe(path: string, more: object = {}) {
    const topic = ++topics;
    const id = await bus.subscribe({ callback: `${receiver.url}${path}`, topics: [topic], ...more });
    const got = () => receiver.received.filter((batch) => batch.path === path);
    return { id, got, publish: (count: number) => bus.publish(many(count, () => ({ topic }))) };
  }
  const errandsOf = async (id: string) =>
    (await bus.db.one<{ n: number }>(sql`select count(*) as n from errand where key like ${`%${id}%`}`)).n;

  it('duplicates without ids: a repeated batch has the id and the bytes of the first, and each event has its number', async () => {
    let failures = 0;
    receiver.reply = () => (failures++ < 1 ? 'reset' : 204);
    const { got, publish: send } = await subscribe('/ids', { max: 3 });
    const seqs = await send(3);
    expect(await receiver.acceptedEvents(3, '/ids')).toEqual(seqs);
    expect(got()).toHaveLength(2);
    expect(new Set(got().map(({ id, body }) => id + body)).size).toBe(1);
  });

  it('no order across batches: while a batch fails, no later one of its subscriber is sent', async () => {
    let failures = 0;
    const { got, publish: send } = await subscribe('/order', { max: 1 });
    receiver.reply = () => (failures++ < 2 ? 500 : 204);
    const seqs = await send(3);
    expect(await receiver.acceptedEvents(3, '/order')).toEqual(seqs);
    expect(got().flatMap(({ seqs: sent }) => sent)).toEqual([seqs[0], seqs[0], ...seqs]);
  });

  it('a slow subscriber occupies every worker: one of 21 receives while all others hang', async () => {
    receiver.reply = ({ path }) => (path === '/hanging' ? 'hang' : 204);
    const hanging = await Promise.all(many(20).map(() => subscribe('/hanging', { requestMs: 20_000 })));
    await Promise.all(hanging.map(({ publish: send }) => send(1)));
    await until('all of them hang', () => hanging[0]?.got().length === 20);
    const { publish: send } = await subscribe('/prompt');
    const seqs = await send(1);
    expect(await receiver.acceptedEvents(1, '/prompt')).toEqual(seqs);
    await bus.db.exec(sql`delete from subscriber where id = any (${hanging.map(({ id }) => id)}::uuid[])`);
  });

  it('unlimited retries: a batch that is never accepted becomes a dead letter, and the next one follows', async () => {
    let sent = 0;
    receiver.reply = () => (sent++ === 0 ? 500 : 204);
    const { id, publish: send } = await subscribe('/limit', { max: 1, maxAttempts: 1 });
    const [first, second] = await send(2);
    expect(await receiver.acceptedEvents(1, '/limit')).toEqual([second]);
    const letters = await bus.db.rows(sql`select first_seq, attempts from dead_letter where subscriber_id = ${id}`);
    expect(letters).toEqual([{ first_seq: first, attempts: 1 }]);
  });

  it('N jobs for each failing subscriber: one that fails has one errand, however many batches wait', async () => {
    receiver.reply = ({ path }) => (path === '/jobs' ? 500 : 204);
    const { id, got, publish: send } = await subscribe('/jobs', { max: 1 });
    await send(100);
    await until('it fails', () => got().length > 0);
    await send(100);
    await until('all are counted', async () => (await bus.readers(id))[0]?.queued === 200);
    expect(await errandsOf(id)).toBe(1);
    await bus.db.exec(sql`delete from subscriber where id = ${id}`);
  });

  it('publishers delay deliveries by timestamps: an event of the year 2100 is delivered at once', async () => {
    const caller = clientOf('shop');
    const event = { type: 'update', url: 'https://shop.example/1', timestamp: Date.UTC(2100, 0, 1) };
    const send = () =>
      publish(bus.ctx, [{ caller, topic: 'future', body: Buffer.from(JSON.stringify(event)), key: null }]);
    await send();
    const { id: topic } = await bus.db.one<{ id: number }>(sql`select id from bus_topic where name = 'future'`);
    await bus.subscribe({ callback: `${receiver.url}/future`, topics: [topic], windowMs: 100 });
    await send();
    const [batch] = await receiver.accepted(1, '/future');
    expect(JSON.parse(batch?.body ?? '')).toMatchObject([{ t: event.timestamp }]);
  });

  it('poison pill: an event beyond the limits of today is delivered as it was stored', async () => {
    const topic = ++topics;
    await bus.subscribe({ callback: `${receiver.url}/pill`, topics: [topic] });
    const data = { text: 'x'.repeat(100_000) };
    const seqs = await bus.publish([{ topic, data }, { topic }]);
    expect(await receiver.acceptedEvents(2, '/pill')).toEqual(seqs);
  });
});

describe('errands', () => {
  let bus: TestBus;
  beforeAll(async () => {
    bus = await TestBus.make();
  });
  afterAll(() => bus?.close());

  const nowMs = Date.UTC(2026, 0, 1);

  it('poison pill: work that loses its worker five times is set aside, and other work is done', async () => {
    const errands = postgresErrands(bus.db);
    await errands.push('main', [{ key: 'pill' }]);
    for (let i = 0; i < errandLimits.mostLosses; i++) {
      expect(await errands.acquire('main', newId(), 1, nowMs + i)).toMatchObject([{ key: 'pill' }]);
      await errands.scrub('main', nowMs + i + 1, errandLimits.mostLosses);
    }
    await errands.push('main', [{ key: 'other' }]);
    expect((await errands.acquire('main', newId(), 10, nowMs)).map(({ key }) => key)).toEqual(['other']);
    expect(await errands.poisoned('main')).toMatchObject([{ key: 'pill', losses: errandLimits.mostLosses }]);
  });

  it('scrubber deadlock: a process that dies while it takes errands back does not keep them', async () => {
    const errands = postgresErrands(bus.db);
    await errands.push('aux', [{ key: 'lost' }]);
    await errands.acquire('aux', newId(), 1, nowMs);
    const scrub = (db: Db) => postgresErrands(db).scrub('aux', nowMs + 1, errandLimits.mostLosses);
    const dying = bus.db.transaction(async (tx) => {
      expect(await scrub(tx)).toBe(1);
      throw new Error('it dies here');
    });
    await expect(dying).rejects.toThrow('it dies here');
    const [one, other] = await Promise.all([scrub(bus.db), scrub(bus.db)]);
    expect(one + other).toBe(1);
    expect(await errands.acquire('aux', newId(), 1, nowMs)).toMatchObject([{ key: 'lost' }]);
  });
});

describe('topics and subscribers', () => {
  let api: TenantApi;
  beforeAll(async () => {
    api = await makeTenantApi();
  });
  afterAll(() => api?.close());

  const shop = clientOf('shop');
  const billing = clientOf('billing');
  const send = async (caller: typeof shop, method: string, path: string, body?: object) =>
    api.fetch(method, `/bus${path}`, { caller, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const event = { type: 'update', url: 'https://shop.example/1' };
  const namesOf = async (answer: Response) => ((await answer.json()) as { name: string }[]).map(({ name }) => name);
  const subscribe = (caller: typeof shop, topics: readonly string[], uuid: string) =>
    send(caller, 'POST', '/subscription', { topics, callback: 'https://billing.example/events', uuid });

  it('fan-out in the publish request: publishing writes nothing for subscribers, however many there are', async () => {
    for (let i = 0; i < 20; i++) expect((await subscribe(clientOf(`many-${i}`), ['wide'], 'u')).status).toBe(204);
    expect((await send(shop, 'POST', '/topics/wide', event)).status).toBe(200);
    const { queued, errands } = await api.db.one<{ queued: number; errands: number }>(sql`
      select (select sum(queued)::bigint from reader) as queued, (select count(*) from errand) as errands`);
    expect({ queued, errands }).toEqual({ queued: 0, errands: 0 });
  });

  it('bad names poison the list of topics: nothing is stored, and the list works', async () => {
    for (const name of ['Orders', 'a1', 'a'.repeat(65), 'a%20b'])
      expect((await send(shop, 'POST', `/topics/${name}`, event)).status, name).toBe(400);
    expect((await subscribe(billing, ['Orders'], 'u')).status).toBe(400);
    const list = await send(shop, 'GET', '/topics');
    expect(list.status).toBe(200);
    expect((await namesOf(list)).filter((name) => !/^[a-z_]{1,64}$/.test(name))).toEqual([]);
  });

  it('a malformed publish takes ownership: it claims and creates nothing', async () => {
    expect((await send(shop, 'POST', '/topics/unclaimed', { type: 'update' })).status).toBe(400);
    expect(await namesOf(await send(shop, 'GET', '/topics'))).not.toContain('unclaimed');
    expect((await send(billing, 'POST', '/topics/unclaimed', event)).status).toBe(200);
    expect((await send(shop, 'POST', '/topics/unclaimed', event)).status).toBe(403);
  });

  it('topic deletion: only its owner deletes it, its subscribers stay usable, and a new topic of that name is not theirs', async () => {
    await send(shop, 'POST', '/topics/doomed', event);
    await subscribe(billing, ['doomed', 'spared'], 'secret-of-billing');
    expect((await send(billing, 'DELETE', '/topics/doomed')).status).toBe(403);
    expect((await send(shop, 'DELETE', '/topics/doomed')).status).toBe(204);
    expect((await send(shop, 'GET', '/subscriptions')).status).toBe(200);
    expect((await send(shop, 'POST', '/topics/doomed', event)).status).toBe(200);
    const own = (await (await send(billing, 'GET', '/subscriber')).json()) as { topics: string[] };
    expect(own.topics).toEqual(['spared']);
    expect((await subscribe(billing, ['spared'], 'secret-of-billing')).status).toBe(204);
    expect((await send(billing, 'DELETE', '/subscriber')).status).toBe(204);
  });

  it('credentials of all subscribers are visible: a list shows those of its caller only', async () => {
    await subscribe(billing, ['spared'], 'secret-of-billing');
    const textOf = async (caller: typeof shop) => (await send(caller, 'GET', '/subscriptions')).text();
    expect(await textOf(billing)).toContain('secret-of-billing');
    expect(await textOf(shop)).not.toContain('secret-of-billing');
  });
});

it('no SSRF guard: addresses of the own network and plain http are refused before anything is dialled', async () => {
  const outbound = makeOutbound({
    allowHttp: false,
    allowed: parseRanges([], 'MILLRACE_BUS'),
    maxConnections: 8,
    now: () => Date.now(),
  });
  const body = Buffer.from('[]');
  try {
    for (const url of ['https://127.0.0.1/', 'https://169.254.169.254/', 'https://[::1]/', 'http://93.184.216.34/'])
      expect(
        await outbound.post({ url, headers: {}, body, connectMs: 1_000, totalMs: 1_000 }, new AbortController().signal),
        url,
      ).toMatchObject({ code: 'refused_address' });
  } finally {
    outbound.close();
  }
});
