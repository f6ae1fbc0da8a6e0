/**
 * Statements that drop a piece (partition) of the bus log although readers have not passed it.
 *
 * Locks: bus_state, reader by (subscriber, strand), replay by id, errand by key, bus_event and the partition, the event log.
 */
import { type Db, sql } from '../../kernel/sql.ts';
import { deliverKey } from '../errand-keys.ts';
import { revokeErrands } from '../subscribers/errands.ts';
import { partitionSize } from './queries.ts';

export interface Piece {
  /** Of the partition. */
  readonly number: number;
  readonly bytes: number;
}

/** The pieces of the log, oldest first; `open`: the one with the newest event, which is never dropped. */
export async function readPieces(db: Db): Promise<{ readonly pieces: readonly Piece[]; readonly open: number }> {
  const pieces = await db.rows<Piece & object>(sql`
    select substring(c.relname from '^bus_event_([0-9]+)$')::float8 as number,
           coalesce(pg_total_relation_size(c.oid), 0)::float8 as bytes
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'bus_event'::regclass
     order by 1`);
  const { open } = await db.one<{ open: number }>(sql`
    select (select coalesce(max(seq), 0) / ${partitionSize} from bus_event)::float8 as open`);
  return { pieces, open };
}

export async function setPieceBytes(db: Db, bytes: number): Promise<void> {
  await db.exec(sql`update bus_state set piece_bytes = ${bytes}::bigint where one and piece_bytes <> ${bytes}::bigint`);
}

/** The number of the last event of a piece; null: it is empty. */
export async function lastOfPiece(db: Db, number: number): Promise<number | null> {
  const from = number * partitionSize;
  const row = await db.one<{ last: number | null }>(sql`
    select max(seq) as last from bus_event where seq >= ${from} and seq < ${from + partitionSize}`);
  return row.last;
}

export interface BehindReader {
  readonly subscriber: string;
  readonly name: string;
  readonly strand: number;
  /** It needs the events after this number: its position, or that of fan-out if nothing is queued for it. */
  readonly start: number;
}

export interface LockedReader extends BehindReader {
  readonly queued: number;
  readonly attempts: number;
  readonly firstFailedAt: Date | null;
}

export function readBehind(db: Db, last: number): Promise<BehindReader[]> {
  return db.rows<BehindReader & object>(behind(last));
}

export function lockBehind(tx: Db, last: number): Promise<LockedReader[]> {
  return tx.rows<LockedReader & object>(sql`${behind(last)} for update of r`);
}

const behind = (last: number) => sql`
  select r.subscriber_id as subscriber, s.name, r.strand, case when r.queued > 0 then r.pos else b.fanned end as start, r.queued,
         r.attempts, r.first_failed_at as "firstFailedAt"
    from reader r
    join subscriber s on s.id = r.subscriber_id
   cross join bus_state b
   where case when r.queued > 0 then r.pos else b.fanned end < ${last}
   order by r.subscriber_id, r.strand`;

export function lockState(tx: Db): Promise<{ readonly fanned: number; readonly revision: number }> {
  return tx.one(sql`select fanned, revision from bus_state where one for update`);
}

/** Whether no other process has dropped the piece. To be called under the lock of the state. */
export async function isPieceThere(tx: Db, number: number): Promise<boolean> {
  const row = await tx.one<{ found: boolean }>(sql`
    select to_regclass(${`bus_event_${number}`}::text) is not null as found`);
  return row.found;
}

export interface MovedReader extends LockedReader {
  readonly lost: number;
  /** What is still queued for it. */
  readonly left: number;
}

/** Moves readers to the end of the piece, and takes their errands from couriers: what those still write has no effect. */
export async function moveReaders(tx: Db, readers: readonly MovedReader[], last: number): Promise<void> {
  await tx.exec(sql`
    update reader r
       set pos = ${last}::bigint, queued = m.rest, batch_end = null, attempts = 0, leased_batch = null, leased_events = null,
           leased_until = null, leased_at = null,
           oldest_at = case
             when m.rest > 0 then (select e.at from bus_event e where e.seq > ${last}::bigint order by e.seq limit 1) end
      from unnest(
             ${readers.map(({ subscriber }) => subscriber)}::uuid[], ${readers.map(({ strand }) => strand)}::smallint[],
             ${readers.map(({ left }) => left)}::bigint[]) as m (subscriber_id, strand, rest)
     where r.subscriber_id = m.subscriber_id and r.strand = m.strand`);
  await revokeErrands(tx, readers.map(deliverKey).toSorted());
}

export interface DroppedLetter {
  readonly id: string;
  readonly batch: string;
  readonly reader: MovedReader;
}

/** A dead letter without events says which ones a reader has lost. */
export async function insertGaps(
  tx: Db,
  letters: readonly DroppedLetter[],
  { last, at }: { readonly last: number; readonly at: Date },
): Promise<void> {
  await tx.exec(sql`
    insert into dead_letter (
      id, subscriber_id, batch, first_seq, last_seq, events, code, attempts, first_failed_at, at)
    select l.id, l.subscriber_id, l.batch, l.first, ${last}::bigint, l.events, 'dropped', l.attempts, l.failed_at, ${at}::timestamptz
      from unnest(
             ${letters.map(({ id }) => id)}::uuid[], ${letters.map(({ reader }) => reader.subscriber)}::uuid[],
             ${letters.map(({ batch }) => batch)}::text[], ${letters.map(({ reader }) => reader.start + 1)}::bigint[],
             ${letters.map(({ reader }) => reader.lost)}::integer[], ${letters.map(({ reader }) => reader.attempts)}::integer[],
             ${letters.map(({ reader }) => reader.firstFailedAt)}::timestamptz[])
           as l (id, subscriber_id, batch, first, events, attempts, failed_at)
    on conflict (subscriber_id, batch) do nothing`);
}

export interface MovedReplay {
  readonly id: string;
  readonly subscriber: string;
  readonly name: string;
}

/** Running replays that would read the piece continue after it. */
export function moveReplays(tx: Db, last: number): Promise<MovedReplay[]> {
  return tx.rows<MovedReplay & object>(sql`
    with behind as (
      select p.id, p.subscriber_id
        from replay p
       where p.state = 'running' and not p.only_undelivered and p.pos < ${last} and p.pos < p.to_seq
       order by p.id
         for update
    )
    update replay p
       set pos = least(p.to_seq, ${last}::bigint), batch_end = null, attempts = 0
      from behind b
      join subscriber s on s.id = b.subscriber_id
     where p.id = b.id
    returning p.id, p.subscriber_id as subscriber, s.name`);
}

/** Events that were never counted are passed as well. */
export async function passDropped(tx: Db, last: number): Promise<void> {
  await tx.exec(sql`update bus_state set fanned = ${last}::bigint where one and fanned < ${last}::bigint`);
}

export async function dropPartition(tx: Db, number: number): Promise<void> {
  await tx.exec(sql`select drop_bus_partition(${number}::bigint)`);
}
