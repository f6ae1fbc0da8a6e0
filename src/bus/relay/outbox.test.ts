/** Events of `millrace.publish()` on their way from the outbox to the bus log. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Schedule } from '../../../test/harness/scheduling.ts';
import { TestBus } from '../../../test/harness/bus.ts';
import { until } from '../../../test/harness/until.ts';
import type { KeyCaller } from '../../contract/roles.ts';
import { newId } from '../../kernel/id.ts';
import { sql } from '../../kernel/sql.ts';
import { publish } from '../publish/publish.ts';
import { changeOwner } from '../topics/topics.ts';
import { eventsPublished } from '../telemetry.ts';
import { copyOutbox, databaseOwner } from './outbox.ts';

let bus: TestBus;
beforeAll(async () => {
  bus = await TestBus.make();
});
afterAll(() => bus?.close());

const copyAll = async (): Promise<void> => {
  while (await copyOutbox(bus.ctx, bus.db));
};
const publishSql = (topic: string) => bus.db.exec(sql`select publish(${topic}, 'update', 'https://example.com/1')`);
const publishAs = async (name: string, topic: string) => {
  const id = newId();
  const who = { kind: 'key', role: 'client', keyId: id, identity: { id, name }, tenantId: null, tenant: null } as const;
  const caller: KeyCaller = { ...who, actor: `key:${name}` };
  const body = Buffer.from('{"type":"update","url":"https://example.com/1"}');
  const [posted] = await publish(bus.ctx, [{ caller, topic, body, key: null }]);
  return posted && 'refused' in posted ? posted.refused.detail : 'accepted';
};
const topic = (name: string) =>
  bus.db.maybeOne<{ owner: string | null; owner_name: string; events: number | null }>(sql`
    select t.owner, t.owner_name, c.events
      from bus_topic t left join topic_count c on c.topic_id = t.id
     where t.name = ${name} and t.deleted_at is null`);

it('rivals copy each row once, in order, to a log that nobody subscribes to', async () => {
  const count = 1_200;
  let counted = 0;
  eventsPublished.on(bus.ctx.telemetry, ({ events }) => (counted += events));
  await bus.db.exec(sql`
    select publish('parcels', 'update', 'https://example.com/' || n, jsonb_build_object('n', n))
      from generate_series(1, ${count}::integer) as n`);
  await Promise.all([copyAll(), copyAll(), copyAll()]);
  const rows = await bus.db.rows<{ body: string; seq: number }>(sql`
    select e.body, e.seq from bus_event e join bus_topic t on t.id = e.topic_id where t.name = 'parcels' order by e.seq`);
  const elements = rows.map(({ body }) => JSON.parse(body) as { id: string; data: { n: number } });
  expect(elements.map(({ data }) => data.n)).toEqual(Array.from({ length: count }, (_, i) => i + 1));
  expect(elements.map(({ id }) => Number(id))).toEqual(rows.map(({ seq }) => seq));
  expect(await bus.db.rows(sql`select id from outbox`)).toEqual([]);
  expect(await topic('parcels')).toMatchObject({ events: count });
  expect(counted).toBe(count);
});

it('a topic that SQL publishes first belongs to the database: keys are refused until an operator gives it to one', async () => {
  await publishSql('letters');
  await copyAll();
  expect(await topic('letters')).toMatchObject({ owner: databaseOwner.id, owner_name: 'database' });
  expect(await publishAs('anna', 'letters')).toMatch(/^topic claimed/);
  await changeOwner(bus.db, { actor: 'test', at: new Date() }, 'letters', { id: newId(), name: 'berta' });
  await publishSql('letters');
  await copyAll();
  expect(await topic('letters')).toMatchObject({ owner_name: 'berta', events: 2 });
});

it('SQL may publish to the topic of a key, which stays its owner', async () => {
  expect(await publishAs('carla', 'invoices')).toBe('accepted');
  await publishSql('invoices');
  await copyAll();
  expect(await topic('invoices')).toMatchObject({ owner_name: 'carla', events: 2 });
});

it('a topic that a subscription has created becomes the database’s with the first event', async () => {
  await bus.db.exec(sql`insert into bus_topic (name, owner_name, created_at) values ('waiting', '', ${new Date(0)})`);
  await publishSql('waiting');
  await copyAll();
  expect(await topic('waiting')).toMatchObject({ owner: databaseOwner.id, events: 1 });
});

it('a scheduler copies at its start what was published before, and later events when it is told', async () => {
  const schedule = await Schedule.make();
  const { db } = schedule.line;
  const copied = (n: number) =>
    until(`${n} events are in the log`, async () => {
      const { found } = await db.one<{ found: number }>(sql`select count(*)::integer as found from bus_event`);
      return found === n || undefined;
    });
  // the clock stands still, so no sweep finds the second event
  await db.exec(sql`select publish('orders', 'create', 'https://example.com/1')`);
  await schedule.start();
  await copied(1);
  await db.exec(sql`select publish('orders', 'create', 'https://example.com/2')`);
  schedule.ctx.hints.send('outbox');
  await copied(2);
  await schedule.close();
});
