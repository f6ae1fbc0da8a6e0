/** The state of a tenant's bus for metrics: errands by queue and state, and the subscribers with the most lag. */
import type { BusStanding, SubscriberStanding } from '../contract/bus.ts';
import { errandQueues } from '../errands/contract.ts';
import { countErrands } from '../errands/queries.ts';
import { type Db, sql } from '../kernel/sql.ts';

export async function readStanding(db: Db, mostSubscribers: number, now: Date): Promise<BusStanding> {
  const [errands, subscribers] = await Promise.all([
    Promise.all(errandQueues.map(async (queue) => [queue, await countErrands(db, queue)] as const)),
    readLags(db, mostSubscribers, now),
  ]);
  return { errands: Object.fromEntries(errands), subscribers };
}

function readLags(db: Db, most: number, now: Date): Promise<SubscriberStanding[]> {
  return db.rows<{ name: string; queued: number; oldestMs: number | null; health: number }>(sql`
    select subscriber.name, lag.queued, subscriber.health,
           (extract(epoch from ${now}::timestamptz - lag.oldest_at) * 1000)::float8 as "oldestMs"
      from subscriber
      join (select subscriber_id, sum(queued)::bigint as queued, min(oldest_at) filter (where queued > 0) as oldest_at
              from reader
             group by subscriber_id) as lag on lag.subscriber_id = subscriber.id
     order by lag.queued desc, subscriber.name
     limit ${most}`);
}
