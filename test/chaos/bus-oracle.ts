/**
 * The conditions that the bus must meet when nothing is left to deliver: every event that was answered with 2xx was stored once and
 * arrived at each of its subscribers, in order, in batches with stable ids and bytes (I7). No errand is left, and none is missing
 * (I8). All counts are exact.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, sql } from '../../src/kernel/sql.ts';
import { RivalsOracle } from '../bus/rivals-oracle.ts';
import type { Received } from '../harness/bus-receiver.ts';
import type { BusWorkload, ExpectedSubscriber } from './bus-workload.ts';

/** Waits until nothing is queued, however slow the machine is. Gives up when nothing has changed for `stalledMs`. */
export async function waitUntilDelivered(db: Db, stalledMs: number): Promise<string[]> {
  let seen = '';
  let movedAt = performance.now();
  while (performance.now() - movedAt < stalledMs) {
    const left = await summarize(db).catch(() => seen);
    if (left === '') return [];
    if (left !== seen) movedAt = performance.now();
    seen = left;
    await sleep(100);
  }
  return [`nothing has changed for ${stalledMs} ms: ${seen}`];
}

/** What is left to do; empty: nothing. */
async function summarize(db: Db): Promise<string> {
  const rows = await db.rows<{ what: string }>(sql`
    select concat('events not counted up to ', max(e.seq)) as what
      from bus_event e cross join bus_state b
     where e.seq > b.fanned
    having count(*) > 0
    union all select concat('queued ', sum(queued), ' at ', sum(pos)) from reader having sum(queued) > 0
    union all select concat('errand ', key, ' ', state::text, ' ', id) from errand
    union all select concat('outbox ', count(*)) from outbox having count(*) > 0
    union all select concat('replay ', id, ' at ', pos) from replay where state = 'running'`);
  return rows.map(({ what }) => what).join('; ');
}

export async function busFaults(db: Db, workload: BusWorkload): Promise<string[]> {
  const oracle = new RivalsOracle();
  await oracle.checkReaders(db);
  for (const subscriber of workload.subscribers) await checkSubscriber(db, oracle, workload, subscriber);
  const [rows, errands] = [await storedFaults(db, workload), await countLeftovers(db)];
  return [...oracle.faults, ...rows, ...errands];
}

async function checkSubscriber(db: Db, oracle: RivalsOracle, workload: BusWorkload, subscriber: ExpectedSubscriber) {
  const { name, id, topics, isPicky, isWide } = subscriber;
  const expected = new Map<number, string>();
  const dead: number[] = [];
  for (const topic of topics)
    for (const { seq, key, isBad } of workload.acknowledged.get(topic) ?? [])
      if (isPicky && isBad) dead.push(seq);
      else expected.set(seq, isWide ? key : 'all');
  for (const seq of await storedByMillrace(db, topics)) expected.set(seq, 'all');
  const received = workload.received.filter(({ path }) => path === `/${name}`);
  checkBodies(oracle, name, received);
  const ordinary = received.filter(
    ({ headers }) => headers['millrace-replay'] === undefined && headers['webhook-id'] !== undefined,
  );
  const events = ordinary.filter((batch) => !batch.id.startsWith('test_'));
  // a refused batch is cut in halves, so only what was accepted says where a batch ended
  oracle.checkReceived(name, expected, isPicky ? events.filter(isAccepted) : events);
  const { sent, letters } = await db.one<{ sent: number; letters: string }>(sql`
    select (select sum(r.sent)::bigint from reader r where r.subscriber_id = ${id}) as sent,
           (select coalesce(string_agg(l.first_seq::text, ' ' order by l.first_seq), '') from dead_letter l
             where l.subscriber_id = ${id}) as letters`);
  if (sent !== expected.size) oracle.note(`${name}: ${sent} events counted as sent, not ${expected.size}`);
  const wanted = dead.toSorted((a, b) => a - b).join(' ');
  if (letters !== wanted) oracle.note(`${name}: dead letters of ${letters}, not of ${wanted}`);
}

function isAccepted({ status }: Received): boolean {
  return status !== undefined && status < 300;
}

/** Also replays send a batch under its id with the same bytes. */
function checkBodies(oracle: RivalsOracle, name: string, received: readonly Received[]): void {
  const bodies = new Map<string, string>();
  for (const { id, body } of received) {
    if (id.startsWith('test_')) continue;
    if ((bodies.get(id) ?? body) !== body) oracle.note(`${name}: batch ${id} has two bodies`);
    bodies.set(id, body);
  }
}

/** Events that no publisher sent over HTTP: copies of the relay. */
async function storedByMillrace(db: Db, topics: readonly string[]): Promise<number[]> {
  const rows = await db.rows<{ seq: number }>(sql`
    select e.seq from bus_event e join bus_topic t on t.id = e.topic_id
     where t.name = any (${topics.filter((topic) => topic.startsWith('millrace_') || topic === 'rows')}::text[])
     order by e.seq`);
  return rows.map(({ seq }) => seq);
}

/** What was answered is stored once, and nothing else is. The relay copied each row once. */
async function storedFaults(db: Db, workload: BusWorkload): Promise<string[]> {
  const rows = await db.rows<{ name: string; n: number }>(sql`
    select t.name, count(*) as n from bus_event e join bus_topic t on t.id = e.topic_id group by t.name`);
  const stored = new Map(rows.map(({ name, n }) => [name, n]));
  const wanted = [...workload.acknowledged].map(([topic, events]) => [topic, events.length] as const);
  const faults = [...wanted, ['rows', workload.publishedInSql] as const].flatMap(([topic, n]) =>
    (stored.get(topic) ?? 0) === n ? [] : `${topic} has ${stored.get(topic) ?? 0} events, not ${n}`,
  );
  const { copied, different, missed } = await db.one<{ copied: number; different: number; missed: number }>(sql`
    with copy as (
      select (e.body::jsonb -> 'data' ->> 'seq')::bigint as seq
        from bus_event e join bus_topic t on t.id = e.topic_id
       where t.name = 'millrace_projects'
    )
    select count(*) as copied, count(distinct seq) as different,
           (select count(*) from event e join topic t on t.id = e.topic_id
             where t.name = 'millrace_projects' and e.seq >= (select min(seq) from copy)
               and e.seq not in (select seq from copy)) as missed
      from copy`);
  if (copied !== different) faults.push(`${copied - different} lifecycle events were copied twice`);
  if (missed > 0) faults.push(`${missed} lifecycle events were not copied`);
  return faults;
}

async function countLeftovers(db: Db): Promise<string[]> {
  const left = await summarize(db);
  return left === '' ? [] : [`left over: ${left}`];
}
