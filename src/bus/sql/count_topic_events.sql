-- Counts the events after p_base by topic: in all, and in this minute. Call it once in each transaction that appends to the bus log,
-- after the events.
--
-- Locks: rows of topic_count and topic_activity, under the lock of the bus log, which the caller holds.
create or replace function count_topic_events(p_base bigint, p_at timestamptz) returns void language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  with appended as (
    select e.topic_id, count(*) as events
      from bus_event e
     where e.seq > p_base
     group by e.topic_id
  ),
  counted as (
    insert into topic_count as c (topic_id, events)
    select a.topic_id, a.events from appended a
    on conflict (topic_id) do update set events = c.events + excluded.events
  )
  insert into topic_activity as t (at, topic_id, events)
  select date_trunc('minute', p_at, 'UTC'), a.topic_id, a.events from appended a
  on conflict (at, topic_id) do update set events = t.events + excluded.events;
end $$;
