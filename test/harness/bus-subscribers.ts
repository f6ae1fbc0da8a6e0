/** Clients of a tenant's bus, and events in its log, for tests that need no courier. */
import type { Caller, Role } from '../../src/contract/roles.ts';
import { newId } from '../../src/kernel/id.ts';
import { type Db, sql } from '../../src/kernel/sql.ts';
import { keyOf } from './tenant-api.ts';

/** A key with an identity of its own. */
export function clientOf(
  name: string,
  role: Role = 'client',
): Caller & { readonly identity: { id: string; name: string } } {
  const key = keyOf(role);
  if (key.kind === 'task') throw new Error('not a key');
  return { ...key, actor: `key:${name}`, identity: { id: newId(), name } };
}

export interface TestEvent {
  readonly topic: string;
  readonly type?: string;
  readonly url?: string;
  readonly data?: object;
  readonly hash?: number;
  readonly target?: string;
  readonly at?: Date;
}

/** Appends events to the bus log. Returns their numbers. */
export async function appendBusEvents(db: Db, events: readonly TestEvent[]): Promise<number[]> {
  const numbers: number[] = [];
  for (const {
    topic,
    type = 'update',
    url = 'https://x.example/1',
    data,
    hash = 0,
    target,
    at = new Date(),
  } of events) {
    const element = { topic, type, url, t: at.getTime(), ...(data === undefined ? {} : { data }) };
    const row = await db.one<{ seq: number }>(sql`
      with number as (select nextval('bus_seq') as seq)
      insert into bus_event (seq, topic_id, key_hash, target, at, body)
      select number.seq, t.id, ${hash}, ${target ?? null}::uuid, ${at},
             left(${JSON.stringify(element)}::text, -1) || ',"id":"' || number.seq || '"}'
        from number, bus_topic t
       where t.name = ${topic} and t.deleted_at is null
      returning seq`);
    numbers.push(row.seq);
  }
  return numbers;
}

/** Counts all new events for readers by their newest revision, without filters: what fan-out does, one reader at a time. */
export async function countForReaders(db: Db): Promise<void> {
  await db.transaction(async (tx) => {
    const { fanned } = await tx.one<{ fanned: number }>(sql`select fanned from bus_state for update`);
    await tx.exec(sql`
      with matching as (
        select r.subscriber_id, r.strand, count(*) as n, min(e.at) as at
          from reader r
          join bus_event e on e.seq > ${fanned}
          join lateral (
            select * from subscription s
             where s.subscriber_id = r.subscriber_id and s.from_seq < e.seq
             order by s.from_seq desc
             limit 1) as s on e.topic_id = any (s.topics) and ((e.key_hash::bigint & 4294967295) % s.strands) = r.strand
         where e.target is null or e.target = r.subscriber_id
         group by 1, 2
      )
      update reader r
         set oldest_at = case when r.queued = 0 then m.at else r.oldest_at end, queued = r.queued + m.n
        from matching m
       where m.subscriber_id = r.subscriber_id and m.strand = r.strand`);
    await tx.exec(sql`
      update bus_state set fanned = greatest(fanned, (select coalesce(max(seq), 0) from bus_event))`);
  });
}
