/** Statements that read the event log. Number order is visible order, so "after n" never skips. */
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
  /** As it was written: JSON text, for lifecycle events. */
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
  const ofTopic = range.topicId === undefined ? sql`true` : isOf(range.topicId);
  return db.rows<LoggedEvent>(sql`
    select event.seq, topic.name as topic, event.type, event.subject, event.actor, event.cause, event.at, event.body
      from event
      join topic on topic.id = event.topic_id
     where event.seq > ${range.after} and ${ofTopic}
     order by event.seq
     limit ${range.limit}`);
}

/** Runs (topic 3) are nearly all that is in the log; the other topics have an index. */
function isOf(topicId: number): Sql {
  return topicId === topics.millrace_runs
    ? sql`event.topic_id = 3`
    : sql`event.topic_id = ${topicId} and event.topic_id <> 3`;
}

/** The newest event that can be seen; the sequence itself may be ahead of it by what is not committed yet. */
export async function newestPosition(db: Db): Promise<number> {
  const row = await db.one<{ seq: number }>(sql`select coalesce(max(seq), 0) as seq from event`);
  return row.seq;
}

export async function findTopic(db: Db, name: string): Promise<number | undefined> {
  const row = await db.maybeOne<{ id: number }>(sql`select id from topic where name = ${name}`);
  return row?.id;
}
