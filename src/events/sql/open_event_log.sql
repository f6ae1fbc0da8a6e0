-- Takes the lock of the event log and makes sure that p_count more events fit into its partitions.
--
-- Call it as the last step of a transaction. Until that transaction ends, no other transaction can append. The order of the
-- numbers is therefore the order of the commits, and a reader that asks for "after n" never skips an event.
--
-- Locks: advisory lock (7345, 1), after every other lock of the transaction.
create or replace function open_event_log(p_count integer) returns void language plpgsql as $$
declare
  v_partition bigint;
begin
  perform pg_advisory_xact_lock(7345, 1);
  select (last_value + p_count + 1) / 1000000 into v_partition from event_seq;
  if to_regclass(format('event_%s', v_partition)) is null then
    perform add_event_partition(v_partition);
  end if;
end $$;
