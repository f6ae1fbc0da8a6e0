import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeContext, type TestContext } from '../../../test/harness/engine-context.ts';
import { makeTenantDatabase, type TenantDatabase } from '../../../test/harness/tenant-database.ts';
import type { Post, Posted } from '../../contract/bus.ts';
import type { KeyCaller, Role } from '../../contract/roles.ts';
import { newId } from '../../kernel/id.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { publish } from './publish.ts';

let database: TenantDatabase;
let db: Db;
let ctx: TestContext;
let now = Date.parse('2026-01-01T00:00:00Z');
beforeAll(async () => {
  database = await makeTenantDatabase();
  db = database.db;
  ctx = makeContext({ ...database, time: { now: () => now } as TestContext['time'] });
});
afterAll(() => database.close());

function caller(name: string, role: Role = 'client'): KeyCaller {
  const id = newId();
  return { kind: 'key', role, keyId: id, identity: { id, name }, tenantId: null, tenant: null, actor: `key:${name}` };
}

let topics = 0;
/** A topic that no other test uses. */
const newTopic = (): string => `topic_${[...String(++topics)].map((digit) => 'abcdefghij'[Number(digit)]).join('')}`;
const event = (n = 1, more: object = {}) => ({ type: 'update', url: `https://example.com/orders/${n}`, ...more });
const post = (by: Post['caller'], topic: string, body: unknown, key: string | null = null): Post => ({
  caller: by,
  topic,
  body: Buffer.from(JSON.stringify(body)),
  key,
});
const publishOne = async (...args: Parameters<typeof post>): Promise<Posted | undefined> =>
  (await publish(ctx, [post(...args)]))[0];

function accepted(outcome: Posted | undefined) {
  if (outcome === undefined || 'refused' in outcome) throw new Error(`refused: ${JSON.stringify(outcome)}`);
  return outcome;
}
function refused(outcome: Posted | undefined) {
  if (outcome === undefined || !('refused' in outcome)) throw new Error(`accepted: ${JSON.stringify(outcome)}`);
  return outcome.refused;
}

const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern);

const storedIn = (topic: string) =>
  db.rows<{ seq: number; body: string; key_hash: number; target: string | null }>(sql`
    select e.seq, e.body, e.key_hash, e.target
      from bus_event e join bus_topic t on t.id = e.topic_id
     where t.name = ${topic}
     order by e.seq`);
const elementsOf = async (topic: string): Promise<unknown[]> =>
  (await storedIn(topic)).map(({ body }) => JSON.parse(body));

describe('publishing', () => {
  const anna = caller('anna');

  it('an event is stored as the finished element of a delivery, with its number as id', async () => {
    const topic = newTopic();
    const { first, last, isBulk, isRepeated } = accepted(
      await publishOne(anna, topic, event(1, { data: { a: [1, 'é"\n'] }, timestamp: null })),
    );
    expect({ last, isBulk, isRepeated }).toEqual({ last: first, isBulk: false, isRepeated: false });
    expect(await elementsOf(topic)).toEqual([
      { topic, type: 'update', url: 'https://example.com/orders/1', t: now, data: { a: [1, 'é"\n'] }, id: first },
    ]);
  });

  it('the time of a publisher is kept, and times of the server grow strictly for each URL', async () => {
    const topic = newTopic();
    await publishOne(anna, topic, [event(7), event(7), event(8), event(7, { timestamp: 5.9 }), event(7)]);
    expect((await elementsOf(topic)).map((each) => (each as { t: number }).t - now)).toEqual([0, 1, 0, 5 - now, 2]);
  });

  it('a bulk is stored in its order, between events of other requests of the group', async () => {
    const [one, two] = [newTopic(), newTopic()];
    const outcomes = await publish(ctx, [
      post(anna, one, event(1)),
      post(anna, two, [event(2), event(3), event(4)]),
      post(anna, one, event(5)),
    ]);
    const numbers = outcomes.map((each) => accepted(each)).map(({ first, last }) => [Number(first), Number(last)]);
    const base = (numbers[0]?.[0] ?? 0) - 1;
    expect(numbers.map(([first = 0, last = 0]) => [first - base, last - base])).toEqual([
      [1, 1],
      [2, 4],
      [5, 5],
    ]);
    expect((await storedIn(two)).map(({ seq, body }) => [seq - base, JSON.parse(body).url.at(-1)])).toEqual([
      [2, '2'],
      [3, '3'],
      [4, '4'],
    ]);
  });

  it('the first valid publish claims a topic, and other publishers are refused', async () => {
    const topic = newTopic();
    const ben = caller('ben', 'publisher');
    const [bad, good, late] = await publish(ctx, [
      post(caller('eve'), topic, { type: 'update' }),
      post(ben, topic, event()),
      post(anna, topic, [event(), event()]),
    ]);
    expect(refused(bad)).toMatchObject({ status: 400, detail: matching(/^bad event: url: /) });
    accepted(good);
    expect(refused(late)).toMatchObject({ status: 403, detail: matching(/^topic claimed/) });
    expect(await storedIn(topic)).toHaveLength(1);
    expect(refused(await publishOne(anna, topic, event())).status).toBe(403);
    accepted(await publishOne(ben, topic, event()));
  });

  it('a topic without an owner is claimed, and one of Millrace is not', async () => {
    const topic = newTopic();
    await db.exec(sql`
      insert into bus_topic (name, owner_name, created_at)
      values (${topic}, '', now()), ('millrace_jobs', 'millrace', now())`);
    accepted(await publishOne(anna, topic, event()));
    expect(refused(await publishOne(caller('ben'), topic, event())).status).toBe(403);
    expect(refused(await publishOne(anna, 'millrace_jobs', event())).detail).toMatch(/^topic claimed/);
  });

  it('one of many publishers that race for a topic wins it', async () => {
    const topic = newTopic();
    const rivals = Array.from({ length: 8 }, (_, i) => caller(`rival ${i}`));
    const outcomes = await Promise.all(rivals.map((rival) => publishOne(rival, topic, event())));
    expect(outcomes.filter((each) => each !== undefined && !('refused' in each))).toHaveLength(1);
    expect(await storedIn(topic)).toHaveLength(1);
  });

  it.each<[string, unknown, RegExp]>([
    ['no object', 5, /^bad event: must be an object/],
    ['an empty array', [], /^bad event: body: has no events/],
    ['too many events', Array.from({ length: 1_001 }, () => event()), /^bad event: body: has 1001 events/],
    ['an unknown type', event(1, { type: 'updated' }), /^bad event: type: must be create, update, delete or noop/],
    ['an http URL', event(1, { url: 'http://example.com/' }), /^bad event: url: must be an https URL/],
    ['a query string', event(1, { url: 'https://example.com/?a=1' }), /^bad event: url: must not have a query/],
    ['a URL with a space', event(1, { url: 'https://exa mple.com/' }), /^bad event: url: is not a valid URL/],
    ['a time as text', event(1, { timestamp: '12' }), /^bad event: timestamp: must be the milliseconds/],
    ['data that is a list', event(1, { data: [1] }), /^bad event: data: must be an object/],
    ['large data', event(1, { data: { a: 'x'.repeat(16_384) } }), /^bad event: data: is too large: 16392 bytes/],
    ['NUL in data', event(1, { data: { a: { b: '\0' } } }), /^bad event: data.a.b: holds a NUL/],
    ['an inexact number', event(1, { data: { a: 2 ** 60 } }), /^bad event: data.a: must not be beyond/],
    ['an empty id', event(1, { id: '' }), /^bad event: id: must have 1 to 255 characters/],
    ['a key that is a number', event(1, { key: 5 }), /^bad event: key: must be text/],
    ['an unknown target', event(1, { target: 'nobody' }), /^bad event: target: there is no subscriber nobody/],
    ['the second event', [event(), event(1, { url: null })], /^bad event: \[1\]\.url: is missing/],
  ])('%s is refused: nothing is written and no topic claimed', async (_, body, detail) => {
    const topic = newTopic();
    expect(refused(await publishOne(anna, topic, body))).toMatchObject({
      status: 400,
      code: 'bad_request',
      detail: matching(detail),
    });
    expect(await db.rows(sql`select from bus_topic where name = ${topic}`)).toHaveLength(0);
  });

  it.each(['Orders', 'a'.repeat(65), 'a1', 'a b', ''])('the topic name "%s" is refused', async (topic) => {
    expect(refused(await publishOne(anna, topic, event()))).toMatchObject({
      status: 400,
      detail: matching(/^bad topic/),
    });
  });

  it.each<[string, Buffer, RegExp]>([
    ['an empty body', Buffer.from(''), /^bad event: body: is empty/],
    ['a body that is not JSON', Buffer.from('{'), /^bad event: body: is not JSON/],
    ['a body that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), /^bad event: body: is not UTF-8/],
    ['a deeply nested body', Buffer.from('['.repeat(5_000)), /^bad event: body: nested more than 200 deep/],
  ])('%s is refused', async (_, body, detail) => {
    const [outcome] = await publish(ctx, [{ caller: anna, topic: newTopic(), body, key: null }]);
    expect(refused(outcome)).toMatchObject({ status: 400, detail: matching(detail) });
  });

  it.each<Role>(['viewer', 'operator', 'subscriber', 'worker'])('the role %s may not publish', async (role) => {
    expect(refused(await publishOne(caller('x', role), newTopic(), event()))).toMatchObject({ status: 403 });
  });

  it('fields that are not known are ignored, as in the original', async () => {
    const topic = newTopic();
    accepted(await publishOne(anna, topic, event(1, { more: { than: 'enough' } })));
    expect(await elementsOf(topic)).toEqual([expect.not.objectContaining({ more: { than: 'enough' } })]);
  });
});

describe('repeated requests', () => {
  const anna = caller('anna');

  it('a repeated Idempotency-Key gets the first answer and stores nothing', async () => {
    const topic = newTopic();
    const body = [event(1), event(2)];
    const first = accepted(await publishOne(anna, topic, body, 'k'));
    expect(accepted(await publishOne(anna, topic, body, 'k'))).toEqual({ ...first, isRepeated: true });
    expect(await storedIn(topic)).toHaveLength(2);
    expect(accepted(await publishOne(anna, topic, body, 'l')).isRepeated).toBe(false);
  });

  it('an Idempotency-Key with another body is refused', async () => {
    const topic = newTopic();
    accepted(await publishOne(anna, topic, event(1), 'k'));
    const other = refused(await publishOne(anna, topic, event(2, { id: 'new' }), 'k'));
    expect(other).toMatchObject({ status: 422, code: 'key_reused' });
    expect(await storedIn(topic)).toHaveLength(1);
    // the id of the refused event was not kept
    expect(accepted(await publishOne(anna, topic, event(2, { id: 'new' }))).isRepeated).toBe(false);
  });

  it('requests of one group with the same key are stored once', async () => {
    const topic = newTopic();
    const outcomes = await publish(
      ctx,
      Array.from({ length: 5 }, () => post(anna, topic, event(1), 'k')),
    );
    const answers = outcomes.map((each) => accepted(each));
    expect(new Set(answers.map(({ first }) => first)).size).toBe(1);
    expect(answers.filter(({ isRepeated }) => isRepeated)).toHaveLength(4);
    expect(await storedIn(topic)).toHaveLength(1);
  });

  it('requests with the same key in several processes at once are stored once', async () => {
    const topic = newTopic();
    const outcomes = await Promise.all(Array.from({ length: 8 }, () => publishOne(anna, topic, event(1), 'k')));
    expect(new Set(outcomes.map((each) => accepted(each).first)).size).toBe(1);
    expect(await storedIn(topic)).toHaveLength(1);
  });

  it('an event with a known id keeps its number, and new ones of the same bulk are stored', async () => {
    const topic = newTopic();
    const { first } = accepted(await publishOne(anna, topic, event(1, { id: 'a' })));
    const again = accepted(await publishOne(anna, topic, event(1, { id: 'a' })));
    expect(again).toMatchObject({ first, isRepeated: true });
    const bulk = accepted(
      await publishOne(anna, topic, [event(1, { id: 'a' }), event(2, { id: 'b' }), event(2, { id: 'b' })], 'k'),
    );
    expect(bulk).toMatchObject({ first, isRepeated: false });
    expect(Number(bulk.last)).toBeGreaterThan(Number(first));
    expect((await storedIn(topic)).map(({ seq }) => String(seq))).toEqual([first, bulk.last]);
  });

  it('keys of one topic do not concern another, and are forgotten after a day', async () => {
    const [one, two] = [newTopic(), newTopic()];
    accepted(await publishOne(anna, one, event(1), 'k'));
    expect(accepted(await publishOne(anna, two, event(2), 'k')).isRepeated).toBe(false);
    now += 24 * 3_600_000;
    expect(accepted(await publishOne(anna, one, event(3), 'k')).isRepeated).toBe(false);
    expect(await storedIn(one)).toHaveLength(2);
    expect(accepted(await publishOne(anna, one, event(3), 'k')).isRepeated).toBe(true);
  });
});

describe('the bus log', () => {
  const anna = caller('anna');

  it('an event goes to a target by name or id', async () => {
    const topic = newTopic();
    const id = newId();
    await db.exec(sql`
      insert into subscriber (id, name, identity, kind, created_at) values (${id}, 'shop--1', ${newId()}, 'pull', now())`);
    await publishOne(anna, topic, [event(1, { target: 'shop--1' }), event(2), event(3, { target: id.toUpperCase() })]);
    expect((await storedIn(topic)).map(({ target }) => target)).toEqual([id, null, id]);
  });

  it('events of one ordering key have the same hash, whatever their URLs', async () => {
    const topic = newTopic();
    await publishOne(anna, topic, [event(1, { key: 'k' }), event(2, { key: 'k' }), event(1), event(1)]);
    const hashes = (await storedIn(topic)).map(({ key_hash: hash }) => hash);
    expect(hashes[0]).toBe(hashes[1]);
    expect(hashes[2]).toBe(hashes[3]);
    expect(hashes[0]).not.toBe(hashes[2]);
  });

  it('a group may continue in the next partition, which exists before it is needed', async () => {
    const topic = newTopic();
    await db.exec(sql`select setval('bus_seq', 3000000)`);
    await publishOne(anna, topic, event());
    expect(await db.one(sql`select to_regclass('bus_event_1') is not null as exists`)).toEqual({ exists: true });
    await db.exec(sql`select setval('bus_seq', 3999999)`);
    await publishOne(anna, topic, [event(1), event(2)]);
    expect((await storedIn(topic)).map(({ seq }) => seq)).toEqual([3_000_001, 4_000_000, 4_000_001]);
  });

  it('a wake-up follows the commit, and none a refusal', async () => {
    let hints = 0;
    const undo = ctx.hints.on('bus', () => void hints++);
    await publishOne(anna, newTopic(), [event(1), event(2)]);
    expect(hints).toBe(1);
    await publishOne(anna, newTopic(), {});
    expect(hints).toBe(1);
    undo();
  });
});
