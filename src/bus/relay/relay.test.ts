/** The relay and test deliveries, with a real database, a real receiver and couriers. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { postgresErrands } from '../../errands/postgres.ts';
import { append, topics } from '../../events/append.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { TestBus } from '../../../test/harness/bus.ts';
import { type BusReceiver, makeBusReceiver } from '../../../test/harness/bus-receiver.ts';
import { until } from '../../../test/harness/until.ts';
import { testKey } from '../errand-keys.ts';
import { batchSent } from '../telemetry.ts';
import { runRelay } from './relay.ts';

let bus: TestBus;
let receiver: BusReceiver;

beforeAll(async () => {
  bus = await TestBus.make();
  receiver = await makeBusReceiver();
});

afterAll(async () => {
  await bus?.close();
  await receiver?.close();
});

const elementsAt = (path: string) =>
  receiver.received
    .filter((one) => one.path === path && one.status === 204)
    .flatMap(({ body }) => JSON.parse(body) as { topic: string; type: string; url: string; data?: object }[]);
const position = async () =>
  (await bus.db.maybeOne<{ position: number }>(sql`select position from event_reader where name = 'bus'`))?.position;
const topicId = async (name: string) => {
  await bus.db.exec(sql`
    insert into bus_topic (name, owner_name, created_at) values (${name}, '', ${new Date(0)}) on conflict do nothing`);
  return (await bus.db.one<{ id: number }>(sql`select id from bus_topic where name = ${name}`)).id;
};
const record = (topic: keyof typeof topics, types: readonly string[]) =>
  bus.db.transaction((tx) =>
    append(
      tx,
      topics[topic],
      types.map((type) => ({ type, subject: newId(), body: { name: type } })),
      { actor: 'key:tests', at: new Date() },
    ),
  );

it('rivals copy each followed event once, in order', async () => {
  const id = await topicId('millrace_projects');
  const subscriber = await bus.subscribe({ callback: `${receiver.url}/projects`, topics: [id] });
  const parts = (courier: string) => ({
    ctx: { ...bus.ctx, courier: { id: courier, others: () => 0 }, outbound: bus.outbound },
    db: bus.db,
    errands: postgresErrands(bus.db),
  });
  const signals = { quiet: new AbortController().signal, abort: new AbortController().signal };
  const relay = () => runRelay(parts(newId()), { key: '["relay",[]]', lease: 0 }, signals);
  // the first one begins at the end of the log
  await relay();
  const types = Array.from({ length: 1_200 }, (_, i) => `project.number_${i}`);
  await record('millrace_projects', types);
  expect(await Promise.all([relay(), relay(), relay()])).toEqual(['over', 'over', 'over']);
  const rows = await bus.db.rows<{ body: string }>(sql`select body from bus_event where topic_id = ${id} order by seq`);
  expect(rows.map(({ body }) => (JSON.parse(body) as { data: { event: string } }).data.event)).toEqual(types);
  await bus.db.exec(sql`delete from subscriber where id = ${subscriber}`);
  await bus.db.exec(sql`update bus_state set revision = revision + 1`);
  await relay();
  expect(await position()).toBeUndefined();
});

it('a courier copies lifecycle events of followed topics only, and lets go of the log without a follower', async () => {
  await bus.startCourier();
  const id = await topicId('millrace_jobs');
  const subscriber = await bus.subscribe({ callback: `${receiver.url}/jobs`, topics: [id] });
  bus.ctx.hints.send('bus');
  await until('the relay has a position', async () => (await position()) !== undefined);
  await record('millrace_runs', ['run.created']);
  await record('millrace_jobs', ['job.created', 'job.changed', 'job.deleted']);
  bus.ctx.hints.send('events');
  await until('they are delivered', async () => elementsAt('/jobs').length >= 3);
  expect(elementsAt('/jobs').map(({ type, data }) => [type, data])).toMatchObject([
    ['create', { event: 'job.created', actor: 'key:tests', body: { name: 'job.created' } }],
    ['update', { event: 'job.changed' }],
    ['delete', { event: 'job.deleted' }],
  ]);
  await bus.change(subscriber, { callback: `${receiver.url}/jobs`, topics: [1] });
  bus.ctx.hints.send('bus');
  await until('the relay has let go', async () => (await position()) === undefined);
});

it('a test is recorded whatever its result, moves nothing, and is done once', async () => {
  const subscriber = await bus.subscribe({ callback: `${receiver.url}/test`, topics: [2] });
  const answers = [204, 500] as const;
  for (const [i, status] of answers.entries()) {
    receiver.reply = () => status;
    await bus.db.exec(sql`insert into errand (queue, key) values ('aux', ${testKey(subscriber)})`);
    bus.ctx.hints.send('bus');
    await until('the errand is gone', async () => {
      const { n } = await bus.db.one<{ n: number }>(sql`
        select count(*) as n from errand where key = ${testKey(subscriber)}`);
      return n === 0;
    });
    const rows = await bus.db.rows<{ batch: string; status: number; events: number }>(sql`
      select batch, status, events from delivery where subscriber_id = ${subscriber} order by id`);
    expect(rows).toHaveLength(i + 1);
    expect(rows[i]).toMatchObject({ status, events: 1 });
    expect(rows[i]?.batch).toMatch(/^test_/);
  }
  const sent = receiver.received.filter(({ path }) => path === '/test');
  expect(sent.map(({ body }) => (JSON.parse(body) as { type: string }[]).map(({ type }) => type))).toEqual([
    ['noop'],
    ['noop'],
  ]);
  expect(await bus.readers(subscriber)).toMatchObject([{ queued: 0, sent: 0, attempts: 0 }]);
});

it('a courier reports errands and the subscribers with the most lag, and counts by the id of the tenant', async () => {
  receiver.reply = () => 204;
  const tenants: string[] = [];
  batchSent.on(bus.ctx.telemetry, ({ tenant }) => void tenants.push(tenant));
  await bus.subscribe({ callback: `${receiver.url}/counted`, topics: [3] });
  const lagging = await bus.subscribe({ callback: `${receiver.url}/paused`, topics: [3] });
  await bus.db.exec(sql`update subscriber set state = 'paused' where id = ${lagging}`);
  await bus.publish([{ topic: 3 }, { topic: 3 }]);
  await until('one is delivered', async () => elementsAt('/counted').length === 2);
  await until('it is counted', async () => tenants.length > 0);
  expect(tenants[0]).toBe(bus.ctx.tenant.id);
  await bus.db.exec(sql`insert into errand (queue, key, state) values ('aux', '["set aside",[]]', 'x')`);
  const courier = bus.makeCourier({ isMortal: true });
  const standing = await courier.standing?.(1);
  expect(standing?.errands['aux']).toMatchObject({ poisoned: 1 });
  expect(standing?.subscribers).toMatchObject([{ name: `tests--${lagging}`, queued: 2, health: 100 }]);
  expect(standing?.subscribers[0]?.oldestMs).toBeGreaterThanOrEqual(0);
});
