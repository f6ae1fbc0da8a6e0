-- Notes failed attempts. The errand of each reader waits until p_run_at.
--
-- A row takes effect only if the worker holds the errand under this lease, and the reader stands at p_from. It returns the keys of
-- the errands that the worker held.
--
-- Locks: subscriber by id, reader by (subscriber, strand), errand by key, the event log.
create or replace function deliver_failed(
  p_worker uuid, p_subscribers uuid[], p_strands smallint[], p_leases integer[], p_from bigint[], p_run_at timestamptz[],
  p_reasons text[], p_at timestamptz
) returns setof text language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_held text[];
  v_failing uuid[];
  v_reasons text[];
begin
  perform from subscriber s where s.id = any (p_subscribers) order by s.id for no key update;
  perform
     from reader r
     join unnest(p_subscribers, p_strands) as a (subscriber_id, strand) using (subscriber_id, strand)
    order by r.subscriber_id, r.strand
      for update of r;
  v_held := array(select held_deliveries(p_worker, p_subscribers, p_strands, p_leases));
  with failed as (
    update reader r
       set attempts = r.attempts + 1, failures = r.failures + 1, first_failed_at = coalesce(r.first_failed_at, p_at)
      from unnest(p_subscribers, p_strands, p_from, p_reasons) as a (subscriber_id, strand, from_pos, reason)
     where r.subscriber_id = a.subscriber_id and r.strand = a.strand and r.pos = a.from_pos
       and deliver_key(r.subscriber_id, r.strand) = any (v_held)
    returning r.subscriber_id, r.failures, a.reason
  ),
  sick as (
    update subscriber s
       set health = greatest(0, s.health - 2 * f.n), first_failed_at = coalesce(s.first_failed_at, p_at), last_attempted_at = p_at
      from (select o.subscriber_id, count(*)::smallint as n from failed o group by 1) as f
     where s.id = f.subscriber_id
  )
  select array_agg(f.subscriber_id), array_agg(f.reason) into v_failing, v_reasons from failed f where f.failures = 5;
  update errand e
     set state = 's', run_at = a.run_at, unnamed_at = null, again = false, attempts = e.attempts + 1, losses = 0, reason = a.reason
    from unnest(p_subscribers, p_strands, p_run_at, p_reasons) as a (subscriber_id, strand, run_at, reason)
   where e.queue = 'main' and e.key = deliver_key(a.subscriber_id, a.strand) and e.key = any (v_held);
  return query select unnest(v_held);
  perform append_bus_events('subscriber.failing', v_failing, v_reasons, p_at);
end $$;
