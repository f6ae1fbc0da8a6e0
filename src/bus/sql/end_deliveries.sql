-- Removes held errands whose readers have nothing queued, or whose subscriber is not active. The others stay with their worker,
-- and count no losses any more, because their readers made progress. The caller has locked readers and errands.
create or replace function end_deliveries(p_held text[], p_subscribers uuid[], p_strands smallint[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
  delete from errand e
   using reader r
    join unnest(p_subscribers, p_strands) as a (subscriber_id, strand) using (subscriber_id, strand)
    join subscriber s on s.id = r.subscriber_id
   where e.queue = 'main' and e.key = deliver_key(r.subscriber_id, r.strand) and e.key = any (p_held)
     and (r.queued = 0 or s.state <> 'active' or s.kind <> 'http');
  update errand set losses = 0, attempts = 0, reason = null
   where queue = 'main' and key = any (p_held) and (losses > 0 or attempts > 0 or reason is not null);
end $$;
