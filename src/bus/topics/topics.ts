/**
 * Topics: listing, deletion, and another owner.
 *
 * A deleted topic keeps its row. Its queued events are still delivered, and a later publish under the same name makes a new topic
 * that nobody is subscribed to. So nobody receives events of a topic that it did not choose.
 */
import { recording } from '../../events/append.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import type { Author } from '../subscribers/context.ts';

/**
 * A JSON array of topics by name, with all events ever published, those of the last full minute, and the number of subscribers. The
 * database renders it: ten thousand topics would keep the other requests of this process waiting.
 */
export async function listTopics(db: Db, now: Date): Promise<string> {
  const row = await db.one<{ topics: string }>(sql`
    with terms as (
      select distinct on (subscriber_id) topics from subscription order by subscriber_id, from_seq desc
    ),
    audience as (
      select topic_id, count(*)::integer as subscribers from terms, unnest(terms.topics) as topic_id group by topic_id
    ),
    listed as (
      select t.name, case when t.owner is not null then t.owner_name end as publisher, coalesce(c.events, 0) as events,
             coalesce(a.events, 0) as last_minute, coalesce(s.subscribers, 0) as subscribers, t.owner,
             to_char(t.created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as created_at
        from bus_topic t
        left join topic_count c on c.topic_id = t.id
        left join topic_activity a
          on a.topic_id = t.id and a.at = date_trunc('minute', ${now}::timestamptz, 'UTC') - interval '1 minute'
        left join audience s on s.topic_id = t.id
       where t.deleted_at is null
       order by t.name
       limit 10000
    )
    select coalesce(json_agg(listed order by name), '[]')::text as topics from listed`);
  return row.topics;
}

export function findTopic(
  db: Db,
  name: string,
): Promise<{ id: number; name: string; owner: string | null } | undefined> {
  return db.maybeOne(sql`select id, name, owner from bus_topic where name = ${name} and deleted_at is null`);
}

/**
 * Deletes a topic if its owner is still the given one. Subscribers lose it, so the revision of the subscriptions changes.
 *
 * Locks: bus_state, bus_topic, the bus log, so that no event is appended to a topic after its deletion, then the event log.
 */
export function deleteTopic(
  db: Db,
  author: Author,
  topic: { id: number; name: string; owner: string | null },
): Promise<boolean> {
  return recording(db, author, async (tx) => {
    await tx.exec(sql`update bus_state set revision = revision + 1`);
    const deleted = await tx.exec(sql`
      update bus_topic set deleted_at = ${author.at}
       where id = ${topic.id} and deleted_at is null and owner is not distinct from ${topic.owner}::uuid`);
    await tx.exec(sql`select open_bus_log(0)`);
    if (deleted === 1) tx.record('millrace_bus', { type: 'topic.deleted', subject: null, body: { topic: topic.name } });
    return deleted === 1;
  });
}

/** Gives a topic to another identity. Returns false if there is no such topic. */
export function changeOwner(
  db: Db,
  author: Author,
  name: string,
  owner: { readonly id: string; readonly name: string },
): Promise<boolean> {
  return recording(db, author, async (tx) => {
    const topic = await tx.maybeOne<{ id: number; owner: string | null }>(sql`
      select id, owner from bus_topic where name = ${name} and deleted_at is null for no key update`);
    if (topic === undefined) return false;
    await tx.exec(sql`update bus_topic set owner = ${owner.id}, owner_name = ${owner.name} where id = ${topic.id}`);
    const body = { topic: name, identity: owner.id, before: topic.owner };
    tx.record('millrace_bus', { type: 'topic.transferred', subject: null, body });
    return true;
  });
}
