/**
 * Statements of the relay and of the outbox. The relay's position in the lifecycle log is the row `bus` of `event_reader`, which exists while somebody
 * subscribes to a topic of Millrace: retention keeps events that a reader has not read.
 *
 * Locks: event_reader, rows of bus_topic by name, advisory lock (7345, 8).
 */
import { type Db, sql } from '../../kernel/sql.ts';

/** The topics of Millrace in the current subscriptions. */
const followed = sql`
  select t.id, t.name
    from bus_topic t
   where t.name like 'millrace\\_%' and t.deleted_at is null and exists (
     select from subscription s
      where t.id = any (s.topics) and not exists (
        select from subscription later where later.subscriber_id = s.subscriber_id and later.from_seq > s.from_seq))`;

export interface RelayNeed {
  readonly isNeeded: boolean;
  /** A topic of Millrace has a subscriber. */
  readonly isFollowing: boolean;
}

/** Whether the relay has work. Without rows and such subscribers this reads two small tables. */
export function findRelayNeed(db: Db): Promise<RelayNeed> {
  return db.one<RelayNeed & object>(sql`
    select f.yes as "isFollowing",
           case when f.yes then coalesce((select max(seq) from event) > r.position, true) else r.position is not null end
             as "isNeeded"
      from (select exists (${followed}) as yes) as f
      left join event_reader r on r.name = 'bus'`);
}

/** Begins at the end of the lifecycle log, unless it has begun. The lock keeps the relay from ending meanwhile. */
export async function beginRelay(tx: Db, at: Date): Promise<void> {
  await tx.exec(sql`
    insert into event_reader as r (name, position, moved_at)
    select 'bus', coalesce(max(seq), 0), ${at}::timestamptz from event
    on conflict (name) do update set moved_at = r.moved_at`);
}

export async function lockPosition(tx: Db): Promise<number | undefined> {
  const row = await tx.maybeOne<{ position: number }>(sql`
    select position from event_reader where name = 'bus' for update`);
  return row?.position;
}

export async function movePosition(tx: Db, position: number, at: Date): Promise<void> {
  await tx.exec(sql`update event_reader set position = ${position}, moved_at = ${at}::timestamptz where name = 'bus'`);
}

export async function endRelay(tx: Db): Promise<void> {
  await tx.exec(sql`delete from event_reader where name = 'bus'`);
}

export async function readFollowed(tx: Db): Promise<ReadonlyMap<string, number>> {
  const rows = await tx.rows<{ id: number; name: string }>(followed);
  return new Map(rows.map(({ id, name }) => [name, id]));
}

export type LifecycleRow = {
  readonly seq: number;
  readonly topic: string;
  readonly type: string;
  readonly subject: string | null;
  readonly actor: string | null;
  readonly cause: string | null;
  readonly at: Date;
  readonly body: string;
};

/** The events of some topics among the next events of all topics. `last`: the number of the last of all; null: there is none. */
export async function readLifecycle(
  tx: Db,
  after: number,
  topics: readonly string[],
  most: number,
): Promise<{ readonly rows: readonly LifecycleRow[]; readonly last: number | null; readonly isFull: boolean }> {
  const { last, n } = await tx.one<{ last: number | null; n: number }>(sql`
    select max(p.seq) as last, count(*)::integer as n
      from (select seq from event where seq > ${after} order by seq limit ${most}) as p`);
  if (last === null) return { rows: [], last, isFull: false };
  const rows = await tx.rows<LifecycleRow>(sql`
    select e.seq, t.name as topic, e.type, e.subject, e.actor, e.cause, e.at, e.body
      from event e
      join topic t on t.id = e.topic_id
     where e.seq > ${after} and e.seq <= ${last} and t.name = any (${topics}::text[])
     order by e.seq`);
  return { rows, last, isFull: n === most };
}

export type OutboxRow = {
  readonly id: number;
  readonly topic: string;
  readonly type: string;
  readonly url: string;
  readonly data: string | null;
  readonly key: string | null;
  readonly at: Date;
};

export async function hasOutbox(db: Db): Promise<boolean> {
  return (await db.one<{ found: boolean }>(sql`select exists (select from outbox) as found`)).found;
}

/** Removes the oldest rows. A second call waits for the first one, and then finds others. */
export async function takeOutbox(tx: Db, most: number): Promise<OutboxRow[]> {
  const rows = await tx.rows<OutboxRow>(sql`
    delete from outbox
     where id = any (array(select id from outbox order by id limit ${most} for update))
    returning id, topic, type, url, data::text as data, key, at`);
  return rows.toSorted((a, b) => a.id - b.id);
}

export interface CopiedEvent {
  readonly topicId: number;
  readonly keyHash: number;
  /** The element of a delivery without its last brace. */
  readonly body: string;
}

export async function appendCopies(tx: Db, events: readonly CopiedEvent[], at: Date): Promise<void> {
  await tx.exec(sql`
    select relay_bus(
      ${events.map(({ topicId }) => topicId)}::integer[],
      ${events.map(({ keyHash }) => keyHash)}::integer[],
      ${events.map(({ body }) => body)}::text[],
      ${at}::timestamptz)`);
}
