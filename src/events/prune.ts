/**
 * Retention of an event log, a tenant's or the control database's: events that are too old or too many go. Never past
 * what the slowest reader that records its position has yet to read, and never the newest event, which says how far the
 * log has come.
 *
 * Whole partitions are dropped. That needs a moment without readers and writers, and whoever comes meanwhile waits behind
 * it: so it gives up after a few milliseconds, and the next pass tries again. Where a partition takes longer than a day
 * to fill, what is old in it is deleted row by row.
 */
import { isLockTimeout } from '../errors.ts';
import { dayMs } from '../kernel/text/duration.ts';
import { type Db, sql } from '../kernel/sql.ts';

export interface EventRetention {
  /** Older ones may go. */
  readonly before: Date | undefined;
  /** How many of the newest stay, however old. */
  readonly most: number | undefined;
  readonly now: Date;
}

export interface PrunedEvents {
  /** Rows that were deleted, and as many as dropped partitions can have held. */
  readonly events: number;
  /** Something is left that may go. */
  readonly more: boolean;
  /** The reader that keeps what would otherwise go. */
  readonly heldBy: string | undefined;
}

const partitionSize = 1_000_000;
const batch = 2_000;

interface Extent {
  readonly newest: number;
  /** The last that everybody has read. */
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
  return { events: events + deleted, more: deleted === batch, heldBy: undefined };
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

/** False where the moment did not come. */
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

/** Numbers and times rise together, so the old ones are the first. */
async function deleteOld(db: Db, { before, now }: EventRetention, upTo: number): Promise<number> {
  if (before === undefined) return 0;
  const oldest = await db.maybeOne<{ seq: number; at: Date }>(sql`select seq, at from event order by seq limit 1`);
  if (oldest === undefined || oldest.at >= before || oldest.seq > upTo) return 0;
  // it fills so fast that it is soon dropped whole
  const end = (Math.floor(oldest.seq / partitionSize) + 1) * partitionSize;
  const next = await db.maybeOne<{ at: Date }>(sql`select at from event where seq >= ${end} order by seq limit 1`);
  if ((next?.at ?? now).getTime() - oldest.at.getTime() < dayMs) return 0;
  return db.exec(sql`
    delete from event
     where seq = any (array(
       select o.seq
         from (select seq, at from event where seq <= ${upTo} order by seq limit ${batch}) as o
        where o.at < ${before}))
       and seq >= ${oldest.seq} and seq < ${end}`);
}
