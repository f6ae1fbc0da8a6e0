/** Statements of the bus's retention. Each deletes at most `limit` rows, the oldest first. */
import { type Db, sql } from '../../kernel/sql.ts';

/** Numbers in one partition of the log. */
export const partitionSize = 4_000_000;

export interface Extent {
  readonly newest: number;
  /** The last number that everyone has passed. */
  readonly passed: number;
  /** Numbers of the partitions, oldest first. */
  readonly partitions: readonly number[];
}

/** A reader without queued events has come as far as fan-out. A replay of dead letters reads no events. */
export function readExtent(db: Db): Promise<Extent> {
  return db.one<Extent & object>(sql`
    select (select coalesce(max(seq), 0) from bus_event)::bigint as newest,
           least(
             b.fanned,
             (select min(r.pos) from reader r where r.queued > 0),
             (select min(p.pos) from replay p where p.state = 'running' and not p.only_undelivered)) as passed,
           array(
             select substring(c.relname from '^bus_event_([0-9]+)$')::float8
               from pg_inherits i
               join pg_class c on c.oid = i.inhrelid
              where i.inhparent = 'bus_event'::regclass
              order by 1) as partitions
      from bus_state b
     where b.one`);
}

export async function lastEventAt(db: Db, partition: number): Promise<Date | undefined> {
  const from = partition * partitionSize;
  const row = await db.maybeOne<{ at: Date }>(sql`
    select at from bus_event where seq >= ${from} and seq < ${from + partitionSize} order by seq desc limit 1`);
  return row?.at;
}

/** Numbers and times rise together, so the oldest events come first. */
export function deleteEvents(
  db: Db,
  { before, upTo, limit }: { readonly before: Date; readonly upTo: number; readonly limit: number },
): Promise<number> {
  return db.exec(sql`
    delete from bus_event
     where seq = any (array(
       select o.seq
         from (select seq, at from bus_event where seq <= ${upTo} order by seq limit ${limit}) as o
        where o.at < ${before}))`);
}

export function forgetPublishKeys(db: Db, before: Date, limit: number): Promise<number> {
  return db.exec(sql`
    delete from publish_key
     where (topic_id, key) in (
       select topic_id, key from publish_key where at < ${before} order by at limit ${limit})`);
}

/** Ids rise with time. */
export function forgetDeliveries(db: Db, before: Date, limit: number): Promise<number> {
  return db.exec(sql`
    delete from delivery
     where id in (select id from delivery order by id limit ${limit}) and at < ${before}`);
}

export function forgetTopicActivity(db: Db, before: Date, limit: number): Promise<number> {
  return db.exec(sql`
    delete from topic_activity
     where (at, topic_id) in (
       select at, topic_id from topic_activity where at < ${before} order by at limit ${limit})`);
}

export function forgetSubscriberActivity(db: Db, before: Date, limit: number): Promise<number> {
  return db.exec(sql`
    delete from subscriber_activity
     where (at, subscriber_id) in (
       select at, subscriber_id from subscriber_activity where at < ${before} order by at limit ${limit})`);
}

export function forgetReplays(db: Db, before: Date, limit: number): Promise<number> {
  return db.exec(sql`
    delete from replay
     where id in (select id from replay where state <> 'running' and at < ${before} limit ${limit})`);
}

/** Revisions that another one follows at a number which all readers of the subscriber have passed. */
export function forgetRevisions(db: Db, limit: number): Promise<number> {
  return db.exec(sql`
    delete from subscription
     where (subscriber_id, from_seq) in (
       select s.subscriber_id, s.from_seq
         from subscription s
        cross join bus_state b
        where exists (
          select
            from subscription n
           where n.subscriber_id = s.subscriber_id and n.from_seq > s.from_seq and n.from_seq <= b.fanned
             and not exists (
               select
                 from reader r
                where r.subscriber_id = s.subscriber_id and r.queued > 0 and r.pos < n.from_seq))
        limit ${limit})`);
}

/** Deleted topics that neither an event nor a subscription names. */
export function forgetTopics(db: Db, before: Date, limit: number): Promise<number> {
  return db.exec(sql`
    delete from bus_topic
     where id in (
       select t.id
         from bus_topic t
        where t.deleted_at < ${before}
          and not exists (select from bus_event e where e.topic_id = t.id)
          and not exists (select from subscription s where t.id = any (s.topics))
        limit ${limit})`);
}
