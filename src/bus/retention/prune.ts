/**
 * Retention of the bus by age: deletes old events that every reader has passed, and what the bus keeps beside them. The limit by
 * bytes is in drop-pieces.ts.
 *
 * 1. An event stays while a reader (of couriers or of consumers that pull) or a running replay has not passed it, or fan-out has not
 *    counted it. The newest event stays, because it holds the end of the log.
 * 2. Whole partitions are dropped. That needs a moment without readers and writers, so it gives up after 20 ms, and the next pass
 *    tries again. Inside the oldest partition, old events are deleted row by row.
 * 3. Each call is one small step. `more`: a further call would delete more.
 */
import { isLockTimeout } from '../../errors.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import { dayMs } from '../../kernel/text/duration.ts';
import * as queries from './queries.ts';

export interface PrunedBus {
  readonly rows: number;
  readonly more: boolean;
}

const keep = {
  publishKeysMs: dayMs,
  activityMs: 7 * dayMs,
  replaysMs: 30 * dayMs,
  deletedTopicsMs: 7 * dayMs,
} as const;

/** Rows that one statement deletes. */
const maxRows = 2_000;

export async function pruneBus(
  db: Db,
  { retentionMs, nowMs }: { readonly retentionMs: number; readonly nowMs: number },
): Promise<PrunedBus> {
  const ago = (ms: number): Date => new Date(nowMs - ms);
  const before = ago(retentionMs);
  const events = await pruneBusEvents(db, before);
  const counts = [
    await queries.forgetPublishKeys(db, ago(keep.publishKeysMs), maxRows),
    await queries.forgetDeliveries(db, before, maxRows),
    await queries.forgetTopicActivity(db, ago(keep.activityMs), maxRows),
    await queries.forgetSubscriberActivity(db, ago(keep.activityMs), maxRows),
    await queries.forgetReplays(db, ago(keep.replaysMs), maxRows),
    await queries.forgetRevisions(db, maxRows),
    await queries.forgetTopics(db, ago(keep.deletedTopicsMs), maxRows),
  ];
  const rows = counts.reduce((sum, count) => sum + count, events.rows);
  return { rows, more: events.more || counts.includes(maxRows) };
}

async function pruneBusEvents(db: Db, before: Date): Promise<PrunedBus> {
  const { passed, newest, partitions } = await queries.readExtent(db);
  const upTo = Math.min(passed, newest - 1);
  let rows = 0;
  for (const number of partitions) {
    const last = (number + 1) * queries.partitionSize - 1;
    if (last > upTo) break;
    const lastAt = await queries.lastEventAt(db, number);
    if (lastAt !== undefined && lastAt >= before) break;
    // readers hold it: row by row meanwhile
    if (!(await dropPartition(db, number))) break;
    rows += queries.partitionSize;
  }
  const deleted = await queries.deleteEvents(db, { before, upTo, limit: maxRows });
  return { rows: rows + deleted, more: deleted === maxRows };
}

/** Returns false if the lock was not free within 20 ms. */
async function dropPartition(db: Db, number: number): Promise<boolean> {
  try {
    await db.transaction(async (tx) => {
      await tx.exec(sql`set local lock_timeout = '20ms'`);
      await tx.exec(sql`select drop_bus_partition(${number}::bigint)`);
    });
    return true;
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}
