/**
 * Retention of an event log (of a tenant or of the control database): deletes events that are too old or too many.
 *
 * 1. Events that a reader with a recorded position has not read yet are kept. So is the newest event, because it holds the
 *    current position of the log.
 * 2. Whole partitions are dropped. That needs a moment without readers and writers, and new ones queue behind it. So it gives
 *    up after 20 ms, and the next pass tries again.
 * 3. If a partition takes longer than a day to fill, its old events are deleted row by row.
 */
import { isLockTimeout } from '../errors.ts';
import { dayMs } from '../kernel/text/duration.ts';
import { type Db, sql } from '../kernel/sql.ts';

export interface EventRetention {
  /** Events older than this may be deleted; undefined: none by age. */
  readonly before: Date | undefined;
  /** Maximum number of events; undefined: no limit. A partition is dropped only if all its events exceed the maximum. */
  readonly most: number | undefined;
  readonly now: Date;
}

export interface PrunedEvents {
  /** Deleted rows, plus the size of each dropped partition. */
  readonly events: number;
  /** Whether a further pass would delete more. */
  readonly more: boolean;
  /** The reader whose position prevented a deletion. */
  readonly heldBy: string | undefined;
}

const partitionSize = 1_000_000;
const deleteBatchSize = 2_000;

interface Extent {
  readonly newest: number;
  /** The last event that all readers have read. */
  readonly read: number;
  readonly slowest: string | undefined;
  /** Numbers of the partitions, oldest first. */
  readonly partitions: readonly number[];
}

export async function pruneEvents(db: Db, retention: EventRetention): Promise<PrunedEvents> {
  const extent = await readExtent(db);
  const current = Math.floor(extent.newest / partitionSize);
  const surplus = retention.most === undefined ? 0 : extent.newest - retention.most;
  let events = 0;
  for (const number of extent.partitions.filter((partition) => partition < current)) {
    const last = await lastEventAt(db, number);
    const old = last === undefined || (retention.before !== undefined && last < retention.before);
    const end = (number + 1) * partitionSize;
    if (!old && end > surplus) break;
    if (end - 1 > extent.read) return { events, more: false, heldBy: extent.slowest };
    if (!(await dropPartition(db, number))) return { events, more: true, heldBy: undefined };
    events += partitionSize;
  }
  const deleted = await deleteOld(db, retention, Math.min(extent.read, extent.newest - 1));
  return { events: events + deleted, more: deleted === deleteBatchSize, heldBy: undefined };
}

async function readExtent(db: Db): Promise<Extent> {
  const row = await db.one<{ newest: number; read: number | null; slowest: string | null; partitions: number[] }>(sql`
    select (select coalesce(max(seq), 0) from event) as newest,
           (select min(position) from event_reader) as read,
           (select name from event_reader order by position limit 1) as slowest,
           array(
             select substring(c.relname from '^event_([0-9]+)$')::float8
               from pg_inherits i
               join pg_class c on c.oid = i.inhrelid
              where i.inhparent = 'event'::regclass
              order by 1
           ) as partitions`);
  return {
    newest: row.newest,
    read: row.read ?? Number.MAX_SAFE_INTEGER,
    slowest: row.slowest ?? undefined,
    partitions: row.partitions,
  };
}

async function lastEventAt(db: Db, partition: number): Promise<Date | undefined> {
  const from = partition * partitionSize;
  const row = await db.maybeOne<{ at: Date }>(sql`
    select at from event where seq >= ${from} and seq < ${from + partitionSize} order by seq desc limit 1`);
  return row?.at;
}

/** Returns false if the lock was not free within 20 ms. */
async function dropPartition(db: Db, number: number): Promise<boolean> {
  try {
    await db.transaction(async (tx) => {
      await tx.exec(sql`set local lock_timeout = '20ms'`);
      await tx.exec(sql`select drop_event_partition(${number}::bigint)`);
    });
    return true;
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}

/** Deletes one batch. Numbers and times rise together, so the oldest events come first. */
async function deleteOld(db: Db, { before, now }: EventRetention, upTo: number): Promise<number> {
  if (before === undefined) return 0;
  const oldest = await db.maybeOne<{ seq: number; at: Date }>(sql`select seq, at from event order by seq limit 1`);
  if (oldest === undefined || oldest.at >= before || oldest.seq > upTo) return 0;
  // a partition that fills within a day will soon be dropped as a whole
  const end = (Math.floor(oldest.seq / partitionSize) + 1) * partitionSize;
  const next = await db.maybeOne<{ at: Date }>(sql`select at from event where seq >= ${end} order by seq limit 1`);
  if ((next?.at ?? now).getTime() - oldest.at.getTime() < dayMs) return 0;
  return db.exec(sql`
    delete from event
     where seq = any (array(
       select o.seq
         from (select seq, at from event where seq <= ${upTo} order by seq limit ${deleteBatchSize}) as o
        where o.at < ${before}))
       and seq >= ${oldest.seq} and seq < ${end}`);
}
