/**
 * Writes to the event log. A change and its events are one commit. Events are buffered during the transaction and appended
 * as its last step, because the append holds the lock of the log until the commit (design §4).
 */
import { type Db, sql } from '../kernel/sql.ts';

/** The reserved topics of a tenant; their ids are fixed by the first migration. */
export const topics = {
  millrace_projects: 1,
  millrace_jobs: 2,
  millrace_runs: 3,
  millrace_tokens: 4,
  millrace_bus: 5,
  millrace_flows: 6,
  millrace_executions: 7,
} as const;
type Topic = keyof typeof topics;

export interface EventDraft {
  readonly type: string;
  readonly subject: string | null;
  readonly cause?: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Recording extends Db {
  /** Buffers an event, to be appended when the work is done. */
  record(topic: Topic, event: EventDraft): void;
}

interface Author {
  readonly actor: string;
  readonly at: Date;
}

/** Runs a transaction and appends its events in the same commit. */
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

/** Appends events in a transaction of the caller. Also used for the control database, whose topics have other ids. */
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
