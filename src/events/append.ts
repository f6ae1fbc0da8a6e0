/**
 * Writing to the event log: a change and its events are one commit. Events are buffered while the transaction works and
 * appended once, last, because the append holds the log's lock until the commit (design §4).
 */
import { type Db, sql } from '../kernel/sql.ts';

/** The reserved topics of a tenant; their ids are fixed by the first migration. */
export const topics = {
  millrace_projects: 1,
  millrace_jobs: 2,
  millrace_runs: 3,
  millrace_tokens: 4,
} as const;
type Topic = keyof typeof topics;

export interface EventDraft {
  readonly type: string;
  readonly subject: string | null;
  readonly cause?: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Recording extends Db {
  /** Notes an event that is to be appended when the work is done. */
  record(topic: Topic, event: EventDraft): void;
}

interface Author {
  readonly actor: string;
  readonly at: Date;
}

/** A transaction whose events are appended with it: all or nothing. */
export function recording<T>(db: Db, author: Author, work: (tx: Recording) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    const drafts = new Map<Topic, EventDraft[]>();
    const record = (topic: Topic, event: EventDraft): void => {
      drafts.set(topic, [...(drafts.get(topic) ?? []), event]);
    };
    const result = await work({ ...tx, record });
    for (const [topic, events] of drafts) await append(tx, topics[topic], events, author);
    return result;
  });
}

/** The reserved topics of the control database. */
export const tenantTopic = 1;
export const keyTopic = 2;

/** For the control database, whose topics have ids of their own. */
export async function append(tx: Db, topicId: number, events: readonly EventDraft[], author: Author): Promise<void> {
  await tx.exec(sql`
    select append_events(
      ${topicId}::integer,
      ${events.map((e) => e.type)}::text[],
      ${events.map((e) => e.subject)}::uuid[],
      ${author.actor}::text,
      ${events.map((e) => e.cause ?? null)}::uuid[],
      ${author.at}::timestamptz,
      ${events.map((e) => JSON.stringify(e.body))}::text[])`);
}
