/**
 * Topics: listing, deletion, and another owner.
 *
 * A deleted topic keeps its row. Its queued events are still delivered, and a later publish under the same name makes a new topic
 * that nobody is subscribed to. So nobody receives events of a topic that it did not choose.
 */
import { type Db, sql } from '../../kernel/sql.ts';

export type TopicRow = {
  name: string;
  owner: string | null;
  owner_name: string;
  events: number;
  created_at: Date;
};

/** Topics by name. `events` is exact: it includes the events that fan-out has not counted yet. */
export function listTopics(db: Db): Promise<TopicRow[]> {
  return db.rows<TopicRow>(sql`
    select t.name, t.owner, t.owner_name, t.created_at,
           t.events + (
             select count(*) from bus_event e where e.topic_id = t.id and e.seq > (select fanned from bus_state)
           ) as events
      from bus_topic t
     where t.deleted_at is null
     order by t.name`);
}

export function findTopic(db: Db, name: string): Promise<{ id: number; owner: string | null } | undefined> {
  return db.maybeOne(sql`select id, owner from bus_topic where name = ${name} and deleted_at is null`);
}

/**
 * Deletes a topic if its owner is still the given one. Subscribers lose it, so the revision of the subscriptions changes.
 *
 * Locks: bus_state, bus_topic, then the bus log, so that no event is appended to a topic after its deletion.
 */
export function deleteTopic(db: Db, topic: { id: number; owner: string | null }, at: Date): Promise<boolean> {
  return db.transaction(async (tx) => {
    await tx.exec(sql`update bus_state set revision = revision + 1`);
    const deleted = await tx.exec(sql`
      update bus_topic set deleted_at = ${at}
       where id = ${topic.id} and deleted_at is null and owner is not distinct from ${topic.owner}::uuid`);
    await tx.exec(sql`select open_bus_log(0)`);
    return deleted === 1;
  });
}

/** Gives a topic to another identity. Returns false if there is no such topic. */
export async function changeOwner(
  db: Db,
  name: string,
  owner: { readonly id: string; readonly name: string },
): Promise<boolean> {
  const changed = await db.exec(sql`
    update bus_topic set owner = ${owner.id}, owner_name = ${owner.name}
     where name = ${name} and deleted_at is null`);
  return changed === 1;
}
