/** Reads activity of the bus from the tables in which fan-out and delivery count it. The last step includes the present lag. */
import type { CallAnswer } from '../../../http/client.ts';
import { allOf, type Db, type Sql, sql } from '../../../kernel/sql.ts';
import type { ApiHandlers } from '../../context.ts';
import { type Steps, stepsOf } from '../../overview/activity.ts';
import type { busActivityEndpoints } from './endpoints.ts';

type Endpoints = typeof busActivityEndpoints;
type Item = CallAnswer<Endpoints['GET /bus/activity']>['items'][number];

interface Scope {
  readonly topic: string | undefined;
  readonly subscriber: string | undefined;
  readonly nowMs: number;
}

const minuteMs = 60_000;

const nothing: Omit<Item, 'at'> = {
  published: 0,
  delivered: 0,
  failed: 0,
  latency_mean: null,
  latency_worst: null,
  queued: 0,
  oldest_age: null,
};

type Row = Omit<Item, 'at'> & { at: Date };

/** The subscribers whose present subscription has the topic. */
const receiversOf = (topic: string): Sql => sql`
  select s.subscriber_id
    from subscription s
   where s.topics && array(select id from bus_topic where name = ${topic})
     and s.from_seq = (select max(o.from_seq) from subscription o where o.subscriber_id = s.subscriber_id)`;

function listBusActivity(db: Db, { stepMs, fromMs, toMs }: Steps, { topic, subscriber, nowMs }: Scope): Promise<Row[]> {
  const binned = sql`date_bin(${stepMs}::integer * interval '1 millisecond', a.at, timestamptz '1970-01-01 00:00:00+00')`;
  const within = sql`a.at >= ${new Date(fromMs)} and a.at < ${new Date(toMs)}`;
  const now = sql`${new Date(nowMs)}::timestamptz`;
  const ofTopic = topic === undefined ? sql`true` : sql`a.topic_id in (select id from bus_topic where name = ${topic})`;
  const ofSubscriber = allOf([
    ...(subscriber === undefined
      ? []
      : [sql`subscriber_id in (select id from subscriber where ${subscriber} in (id::text, name))`]),
    ...(topic === undefined ? [] : [sql`subscriber_id in (${receiversOf(topic)})`]),
  ]);
  return db.rows<Row>(sql`
    with published as (
      select ${binned} as at, sum(a.events) as events
        from topic_activity a
       where ${within} and ${ofTopic}
       group by 1),
    delivered as (
      select ${binned} as at, sum(a.events) as events, sum(a.failed) as failed,
             sum(a.latency_ms) as latency_ms, max(a.worst_latency_ms) as worst_latency_ms
        from subscriber_activity a
       where ${within} and ${ofSubscriber}
       group by 1),
    lag as (
      select ${binned} as at, max(a.queued) as queued, max(a.oldest_ms) as oldest_ms
        from (
          select a.at, sum(a.queued) as queued, max(a.oldest_ms) as oldest_ms
            from subscriber_activity a
           where ${within} and ${ofSubscriber}
           group by a.at
          union all
          select ${now}, sum(queued), extract(epoch from ${now} - min(oldest_at) filter (where queued > 0)) * 1000
            from reader
           where ${ofSubscriber}) as a
       group by 1)
    select at, coalesce(p.events, 0)::float8 as published, coalesce(d.events, 0)::float8 as delivered,
           coalesce(d.failed, 0)::float8 as failed,
           (d.latency_ms / nullif(d.events, 0))::float8 as latency_mean,
           (case when d.events > 0 then d.worst_latency_ms end)::float8 as latency_worst,
           coalesce(l.queued, 0)::float8 as queued,
           (case when l.queued > 0 then greatest(0, l.oldest_ms) end)::float8 as oldest_age
      from published p
      full join delivered d using (at)
      full join lag l using (at)`);
}

export const busActivityHandlers: ApiHandlers<Endpoints> = {
  'GET /bus/activity': async ({ query: { minutes, topic, subscriber } }, ctx) => {
    const nowMs = ctx.time.now();
    const steps = stepsOf(minutes, nowMs);
    const rows = await listBusActivity(ctx.db, steps, { topic, subscriber, nowMs });
    const known = new Map(rows.map((row) => [row.at.getTime(), row]));
    const { stepMs, fromMs, toMs } = steps;
    const items = Array.from({ length: (toMs - fromMs) / stepMs }, (_, i) => {
      const atMs = fromMs + i * stepMs;
      return { ...(known.get(atMs) ?? nothing), at: new Date(atMs).toISOString() };
    });
    return { step: stepMs / minuteMs, items };
  },
};
