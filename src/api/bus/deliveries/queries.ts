/** Statements about deliveries and dead letters, newest first. */
import { pullCodes } from '../../../bus/subscribers/pull-queries.ts';
import { allOf, type Db, type Sql, sql } from '../../../kernel/sql.ts';

export type DeliveryRow = {
  readonly id: number;
  readonly at: Date;
  readonly batch: string;
  readonly attempt: number;
  readonly events: number;
  readonly status: number | null;
  readonly code: string | null;
  readonly ms: number;
  readonly excerpt: string | null;
};

const columns = sql`id, at, batch, attempt, events, status, code, ms, excerpt`;

export interface DeliveryPage {
  readonly subscriber: string;
  /** The time and the id of the last delivery of the page before. */
  readonly before: { readonly at: Date; readonly id: number } | undefined;
  readonly failed: boolean;
  readonly batch: string | undefined;
  readonly limit: number;
}

/** Of batches that were pulled: they have no status. */
const successes = sql`(${pullCodes.handedOut}::text, ${pullCodes.acknowledged}::text)`;

export function listDeliveries(db: Db, page: DeliveryPage): Promise<DeliveryRow[]> {
  const conditions: Sql[] = [sql`subscriber_id = ${page.subscriber}`];
  if (page.before) conditions.push(sql`(at, id) < (${page.before.at}::timestamptz, ${page.before.id}::bigint)`);
  if (page.failed)
    conditions.push(sql`(status is null or status not between 200 and 299) and coalesce(code, '') not in ${successes}`);
  if (page.batch !== undefined) conditions.push(sql`batch = ${page.batch}`);
  return db.rows<DeliveryRow>(sql`
    select ${columns} from delivery where ${allOf(conditions)} order by at desc, id desc limit ${page.limit}`);
}

export async function newestDelivery(db: Db, subscriber: string): Promise<number> {
  const row = await db.one<{ id: number }>(sql`
    select coalesce(max(id), 0)::bigint as id from delivery where subscriber_id = ${subscriber}`);
  return row.id;
}

/** The first test after a delivery. */
export function findTestDelivery(db: Db, subscriber: string, after: number): Promise<DeliveryRow | undefined> {
  return db.maybeOne<DeliveryRow>(sql`
    select ${columns} from delivery
     where subscriber_id = ${subscriber} and id > ${after} and batch like 'test\\_%'
     order by id
     limit 1`);
}

export type LetterRow = {
  readonly id: string;
  readonly subscriber_id: string;
  readonly subscriber: string;
  readonly batch: string;
  readonly first_seq: number;
  readonly last_seq: number;
  readonly events: number;
  readonly status: number | null;
  readonly code: string;
  readonly attempts: number;
  readonly first_failed_at: Date | null;
  readonly at: Date;
};

const letters = (more: Sql) => sql`
    select d.id, d.subscriber_id, s.name as subscriber, d.batch, d.first_seq, d.last_seq, d.events, d.status, d.code, d.attempts,
           d.first_failed_at, d.at ${more}
      from dead_letter d
      join subscriber s on s.id = d.subscriber_id`;

export interface LetterPage {
  /** Undefined: of all subscribers. */
  readonly subscriber: string | undefined;
  readonly before: { readonly at: Date; readonly id: string } | undefined;
  readonly limit: number;
}

export function listLetters(db: Db, page: LetterPage): Promise<LetterRow[]> {
  const conditions: Sql[] = [];
  if (page.subscriber !== undefined) conditions.push(sql`d.subscriber_id = ${page.subscriber}`);
  if (page.before) conditions.push(sql`(d.at, d.id) < (${page.before.at}::timestamptz, ${page.before.id}::uuid)`);
  return db.rows<LetterRow>(sql`
    ${letters(sql``)} where ${allOf(conditions)} order by d.at desc, d.id desc limit ${page.limit}`);
}

/** Without its events, which may be 16 MiB. */
export function findLetter(db: Db, id: string): Promise<(LetterRow & { has_body: boolean }) | undefined> {
  return db.maybeOne(sql`${letters(sql`, d.body is not null as has_body`)} where d.id = ${id}`);
}

/** The beginning of the events' text, and the length of all of it. */
export function readLetterBody(
  db: Db,
  id: string,
  maxChars: number,
): Promise<{ beginning: string; chars: number } | undefined> {
  return db.maybeOne(sql`
    select left(body, ${maxChars}::integer) as beginning, length(body) as chars
      from dead_letter
     where id = ${id} and body is not null`);
}

export function deleteLetter(db: Db, id: string): Promise<number> {
  return db.exec(sql`delete from dead_letter where id = ${id}`);
}

export function deleteLetters(db: Db, subscriber: string): Promise<number> {
  return db.exec(sql`delete from dead_letter where subscriber_id = ${subscriber}`);
}

/** The range of a subscriber's dead letters that have events; null: there are none. */
export function lettersRange(db: Db, subscriber: string): Promise<{ first: number | null; last: number | null }> {
  return db.one(sql`
    select min(first_seq) as first, max(last_seq) as last
      from dead_letter
     where subscriber_id = ${subscriber} and body is not null`);
}
