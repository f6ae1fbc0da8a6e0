-- Closes batches before they are full, by storing their last event. From then on the batch has these events, whoever sends it.
-- A closed batch can be cut shorter, never made longer.
--
-- A row takes effect only if the worker holds the errand under this lease, and the reader stands at p_from. It returns the keys of
-- the errands for which it did.
--
-- Locks: reader by (subscriber, strand), errand by key.
create or replace function cut_short(
  p_worker uuid, p_subscribers uuid[], p_strands smallint[], p_leases integer[], p_from bigint[], p_ends bigint[]
) returns setof text language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_held text[];
begin
  perform
     from reader r
     join unnest(p_subscribers, p_strands) as a (subscriber_id, strand) using (subscriber_id, strand)
    order by r.subscriber_id, r.strand
      for update of r;
  v_held := array(select held_deliveries(p_worker, p_subscribers, p_strands, p_leases));
  return query
  update reader r
     set batch_end = a.batch_end
    from unnest(p_subscribers, p_strands, p_from, p_ends) as a (subscriber_id, strand, from_pos, batch_end)
   where r.subscriber_id = a.subscriber_id and r.strand = a.strand and r.pos = a.from_pos
     and (r.batch_end is null or r.batch_end >= a.batch_end)
     and deliver_key(r.subscriber_id, r.strand) = any (v_held)
  returning deliver_key(r.subscriber_id, r.strand);
end $$;
