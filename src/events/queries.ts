/** Statements that read the event log. Events become visible in number order, so a reader of "after n" misses none. */
import { type Db, type Sql, sql } from '../kernel/sql.ts';
import { topics } from './append.ts';

export type LoggedEvent = {
  readonly seq: number;
  readonly topic: string;
  readonly type: string;
  readonly subject: string | null;
  readonly actor: string | null;
  readonly cause: string | null;
  readonly at: Date;
  /** The text as it was written. JSON for lifecycle events. */
  readonly body: string;
};

export interface ReadRange {
  /** Exclusive. */
  readonly after: number;
  readonly limit: number;
  readonly topicId?: number | undefined;
}

/** One page by position. */
export async function readEvents(db: Db, range: ReadRange): Promise<LoggedEvent[]> {
  const ofTopic = range.topicId === undefined ? sql`true` : matchTopic(range.topicId);
  return db.rows<LoggedEvent>(sql`
    select event.seq, topic.name as topic, event.type, event.subject, event.actor, event.cause, event.at, event.body
      from event
      join topic on topic.id = event.topic_id
     where event.seq > ${range.after} and ${ofTopic}
     order by event.seq
     limit ${range.limit}`);
}

/** Nearly all events concern runs (topic 3). Only the other topics have an index. */
function matchTopic(topicId: number): Sql {
  return topicId === topics.millrace_runs
    ? sql`event.topic_id = 3`
    : sql`event.topic_id = ${topicId} and event.topic_id <> 3`;
}

/** The number of the newest visible event. The sequence may be ahead of it, by events that are not committed yet. */
export async function newestPosition(db: Db): Promise<number> {
  const row = await db.one<{ seq: number }>(sql`select coalesce(max(seq), 0) as seq from event`);
  return row.seq;
}

export async function findTopic(db: Db, name: string): Promise<number | undefined> {
  const row = await db.maybeOne<{ id: number }>(sql`select id from topic where name = ${name}`);
  return row?.id;
}
