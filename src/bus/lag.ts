/**
 * The history of each subscriber's lag, for charts. The scheduler writes it and no courier takes part, so the lag of a subscriber that
 * is paused, disabled or without a courier is recorded too.
 *
 * 1. One statement records all subscribers. It writes nothing for one without queued events.
 * 2. A row holds the maximum of its minute. Two schedulers, or a scheduler that repeats itself, therefore write the same row.
 */
import { type Db, sql } from '../kernel/sql.ts';

/** Two samples fall into every minute, so a late one leaves no gap in a chart. */
export const lagSampleMs = 30_000;

const minuteMs = 60_000;

/** Returns the number of subscribers with queued events. */
export function sampleLag(db: Db, nowMs: number): Promise<number> {
  const minute = new Date(Math.floor(nowMs / minuteMs) * minuteMs);
  return db.exec(sql`
    insert into subscriber_activity as a (at, subscriber_id, queued, oldest_ms)
    select ${minute}, r.subscriber_id, sum(r.queued),
           coalesce(greatest(0, extract(epoch from ${new Date(nowMs)}::timestamptz - min(r.oldest_at)) * 1000), 0)::bigint
      from reader r
     where r.queued > 0
     group by r.subscriber_id
     order by r.subscriber_id
    on conflict (at, subscriber_id) do update
       set queued = greatest(a.queued, excluded.queued), oldest_ms = greatest(a.oldest_ms, excluded.oldest_ms)`);
}
