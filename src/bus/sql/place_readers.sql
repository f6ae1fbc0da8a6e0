-- Places all readers of a subscriber at one number, with one revision from there on, which keeps its origin. Strands that the revision
-- lacks are removed.
--
-- p_counts, p_oldest: by strand, the events after p_from that fan-out has passed, and when the first of them was accepted. p_from
-- null, or beyond the newest event: after the newest event. Returns the number.
--
-- Locks: the bus log; before it bus_state, the subscriber, its readers and errands, which the caller has locked.
create or replace function place_readers(
  p_subscriber uuid, p_from bigint, p_strands smallint[], p_counts bigint[], p_oldest timestamptz[]
) returns bigint language plpgsql as $$
declare
  v_head bigint;
  v_from bigint;
begin
  perform pg_advisory_xact_lock(7345, 8);
  select case when is_called then last_value else last_value - 1 end into v_head from bus_seq;
  v_from := least(coalesce(p_from, v_head), v_head);
  delete from subscription s
   where s.subscriber_id = p_subscriber
     and s.from_seq < (select max(o.from_seq) from subscription o where o.subscriber_id = p_subscriber);
  update subscription set from_seq = v_from where subscriber_id = p_subscriber;
  with gone as (
    delete from reader r
     using subscription s
     where s.subscriber_id = p_subscriber and r.subscriber_id = p_subscriber and r.strand >= s.strands
    returning r.sent
  )
  update reader set sent = sent + coalesce((select sum(gone.sent) from gone), 0)
   where subscriber_id = p_subscriber and strand = 0;
  update reader r
     set pos = v_from,
         queued = coalesce((select c.n from unnest(p_strands, p_counts) as c (strand, n) where c.strand = r.strand), 0),
         oldest_at = (select c.at from unnest(p_strands, p_oldest) as c (strand, at) where c.strand = r.strand),
         batch_end = null, attempts = 0, failures = 0, first_failed_at = null, leased_batch = null,
         leased_events = null, leased_until = null, leased_at = null
   where r.subscriber_id = p_subscriber;
  return v_from;
end $$;
