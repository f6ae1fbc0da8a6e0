/** Statements that explain deliveries. */
import { type Db, sql } from '../../../kernel/sql.ts';
import { type DroppedEvents, droppedOf } from '../subscribers/queries.ts';
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

/** The gap that a batch lies in, if the limit by bytes has dropped its events. */
export function findGapOf(
  db: Db,
  { subscriber, strand, last }: { readonly subscriber: string; readonly strand: string; readonly last: number },
): Promise<{ id: string; batch: string; events: number; at: Date } | undefined> {
  return db.maybeOne(sql`
    select id, batch, events, at
      from dead_letter
     where subscriber_id = ${subscriber} and code = 'dropped' and first_seq <= ${last} and last_seq >= ${last}
       and batch like ${`%\\_${strand}\\_%\\_%`}
     limit 1`);
}

/** The replay that sends a batch, or has sent it: a running one, else the newest. */
export function findReplayOf(
  db: Db,
  subscriber: string,
  { first, last }: { readonly first: number; readonly last: number },
): Promise<
  { id: string; state: string; pos: number; attempts: number; run_at: Date | null; reason: string | null } | undefined
> {
  return db.maybeOne(sql`
    select r.id, r.state, r.pos, r.attempts, e.run_at, e.reason
      from replay r
      left join errand e on e.queue = 'main' and e.key = '["replay",["' || r.id::text || '"]]'
     where r.subscriber_id = ${subscriber} and not r.only_undelivered and r.from_seq < ${first} and r.to_seq >= ${last}
     order by r.state = 'running' desc, r.at desc
     limit 1`);
}

/** All that the limit by bytes has dropped for a subscriber. */
export async function findDropped(db: Db, subscriber: string): Promise<DroppedEvents | null> {
  const row = await db.one<{ dropped: DroppedEvents | null }>(sql`select ${droppedOf(sql`${subscriber}`)} as dropped`);
  return row.dropped;
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
