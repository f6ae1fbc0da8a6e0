/** The state of a tenant's bus for metrics: errands by queue and state, and the subscribers with the most lag. */
import type { BusStanding, SubscriberStanding } from '../contract/bus.ts';
import type { ErrandState } from '../errands/contract.ts';
import { type Db, sql } from '../kernel/sql.ts';

const states: Readonly<Record<string, ErrandState>> = { s: 'scheduled', r: 'ready', p: 'pending', x: 'poisoned' };

export async function readStanding(db: Db, mostSubscribers: number, now: Date): Promise<BusStanding> {
  const [errands, subscribers] = await Promise.all([
    db.rows<{ queue: string; state: string; n: number }>(sql`
      select queue, state::text, count(*)::integer as n from errand group by queue, state`),
    readLags(db, mostSubscribers, now),
  ]);
  const byQueue: Record<string, Record<string, number>> = {};
  for (const { queue, state, n } of errands) byQueue[queue] = { ...byQueue[queue], [states[state] ?? state]: n };
  return { errands: byQueue, subscribers };
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
