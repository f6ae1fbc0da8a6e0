-- Writes a revision of a subscription: it counts for events after the number that is returned, the newest one at this moment.
--
-- Call it as the last step of a transaction that has bumped bus_state.revision: it holds the lock of the bus log until the commit.
-- A revision that no event has met yet is replaced, but replays and moves may have applied it to earlier events: its version is never
-- used again. Readers of new strands begin at the same number.
--
-- Locks: the bus log; before it bus_state, readers and errands, which the caller has locked.
create or replace function revise_subscription(
  p_subscriber uuid, p_topics integer[], p_filter jsonb, p_max_events integer, p_max_bytes integer, p_window_ms integer,
  p_quiet boolean, p_strands smallint, p_ordering text
) returns bigint language plpgsql as $$
declare
  v_head bigint;
  v_version bigint;
begin
  perform pg_advisory_xact_lock(7345, 8);
  select case when is_called then last_value else last_value - 1 end into v_head from bus_seq;
  select greatest(v_head, max(version) + 1) into v_version from subscription where subscriber_id = p_subscriber;
  insert into subscription (
    subscriber_id, from_seq, origin_seq, version, topics, filter, max_events, max_bytes, window_ms, quiet, strands, ordering)
  values (
    p_subscriber, v_head, v_head, v_version, p_topics, p_filter, p_max_events, p_max_bytes, p_window_ms, p_quiet, p_strands, p_ordering)
  on conflict (subscriber_id, from_seq) do update
     set origin_seq = excluded.origin_seq, version = excluded.version, topics = excluded.topics, filter = excluded.filter,
         max_events = excluded.max_events, max_bytes = excluded.max_bytes, window_ms = excluded.window_ms, quiet = excluded.quiet, strands = excluded.strands, ordering = excluded.ordering;
  insert into reader (subscriber_id, strand, pos)
  select p_subscriber, strand, v_head from generate_series(0, p_strands - 1) as strand
  on conflict do nothing;
  return v_head;
end $$;
