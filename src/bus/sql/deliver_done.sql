-- Moves readers past batches that were accepted. An errand is removed only if nothing is queued for its reader (I8): fan-out counts
-- under the same row lock, so an event that is counted meanwhile keeps its errand.
--
-- A row takes effect only if the worker holds the errand under this lease, and the reader stands at p_from. A row that took effect
-- before is answered in the same way, so a repeated call is harmless. It returns the state of each reader that was named and
-- whether the worker (still) holds its errand.
--
-- Locks: subscriber by id, reader by (subscriber, strand), errand by key, the event log.
create or replace function deliver_done(
  p_worker uuid, p_subscribers uuid[], p_strands smallint[], p_leases integer[], p_from bigint[], p_to bigint[], p_counts integer[],
  p_batches integer[], p_next timestamptz[], p_at timestamptz
) returns table (subscriber_id uuid, strand smallint, is_held boolean, pos bigint, queued bigint, state text)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_held text[];
  v_recovered uuid[];
begin
  perform
     from subscriber s
    where s.id = any (p_subscribers)
      and (s.health < 100 or s.first_failed_at is not null or s.last_delivered_at is null
           or s.last_delivered_at < p_at - interval '5 seconds')
    order by s.id
      for no key update;
  perform
     from reader r
     join unnest(p_subscribers, p_strands) as a (subscriber_id, strand) using (subscriber_id, strand)
    order by r.subscriber_id, r.strand
      for update of r;
  v_held := array(select held_deliveries(p_worker, p_subscribers, p_strands, p_leases));
  with moved as (
    select r.subscriber_id, r.strand, r.failures >= 5 as is_recovered, a.to_pos, a.n, a.next_at, a.batches
      from reader r
      join unnest(p_subscribers, p_strands, p_from, p_to, p_counts, p_batches, p_next)
        as a (subscriber_id, strand, from_pos, to_pos, n, batches, next_at) using (subscriber_id, strand)
     where r.pos = a.from_pos and deliver_key(r.subscriber_id, r.strand) = any (v_held)
  ),
  past as (
    update reader r
       set pos = m.to_pos, queued = r.queued - m.n, sent = r.sent + m.n, batch_end = null, attempts = 0, failures = 0,
           first_failed_at = null, oldest_at = case when r.queued > m.n then coalesce(m.next_at, r.oldest_at) end
      from moved m
     where r.subscriber_id = m.subscriber_id and r.strand = m.strand
  ),
  well as (
    update subscriber s
       set health = least(100, s.health + m.batches), first_failed_at = null, last_attempted_at = p_at, last_delivered_at = p_at
      from (select o.subscriber_id, sum(o.batches) as batches from moved o group by 1) as m
     where s.id = m.subscriber_id
       and (s.health < 100 or s.first_failed_at is not null or s.last_delivered_at is null
            or s.last_delivered_at < p_at - interval '5 seconds')
  )
  select array_agg(m.subscriber_id) into v_recovered from moved m where m.is_recovered;
  perform end_deliveries(v_held, p_subscribers, p_strands);
  return query
  select r.subscriber_id, r.strand,
         exists (select from errand e where e.queue = 'main' and e.key = deliver_key(r.subscriber_id, r.strand) and e.key = any (v_held)),
         r.pos, r.queued, s.state
    from reader r
    join unnest(p_subscribers, p_strands) as a (subscriber_id, strand) using (subscriber_id, strand)
    join subscriber s on s.id = r.subscriber_id;
  perform append_bus_events('subscriber.recovered', v_recovered, null, p_at);
end $$;
