/** Statements that explain deliveries. */
import { type Db, sql } from '../../../kernel/sql.ts';
import type { Subscriber } from '../../../bus/subscribers/queries.ts';

export type ExplainedDelivery = {
  readonly at: Date;
  readonly batch: string;
  readonly status: number | null;
  readonly code: string | null;
  readonly excerpt: string | null;
};

export function lastDelivery(db: Db, subscriber: string, batch?: string): Promise<ExplainedDelivery | undefined> {
  const ofBatch = batch === undefined ? sql`batch not like 'test\\_%'` : sql`batch = ${batch}`;
  return db.maybeOne<ExplainedDelivery>(sql`
    select at, batch, status, code, excerpt from delivery
     where subscriber_id = ${subscriber} and ${ofBatch}
     order by at desc, id desc
     limit 1`);
}

/** By the last 8 digits of the id, which begin the ids of its batches. */
export function findByDigits(db: Db, digits: string): Promise<{ id: string }[]> {
  return db.rows(sql`select id from subscriber where right(id::text, 8) = ${digits}`);
}

export function findLetterOf(
  db: Db,
  subscriber: string,
  batch: string,
): Promise<{ id: string; code: string; attempts: number; hasBody: boolean } | undefined> {
  return db.maybeOne(sql`
    select id, code, attempts, body is not null as "hasBody"
      from dead_letter
     where subscriber_id = ${subscriber} and batch = ${batch}`);
}

/** Events that were accepted, and that no courier has counted for its readers yet. */
export async function countUnfanned(db: Db): Promise<number> {
  const row = await db.one<{ n: number }>(sql`
    select count(*) as n from bus_event where seq > (select fanned from bus_state)`);
  return row.n;
}

/** The actor of the last change of its state. */
export async function lastStateChange(
  db: Db,
  { id }: Subscriber,
): Promise<{ actor: string | null; at: Date } | undefined> {
  return db.maybeOne(sql`
    select actor, at from event
     where topic_id = 5 and topic_id <> 3 and subject = ${id} and type in ('subscriber.paused', 'subscriber.disabled')
     order by seq desc
     limit 1`);
}
