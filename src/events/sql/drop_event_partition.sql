-- Drops a partition of the event log.
--
-- It needs a moment without readers and writers. The caller sets lock_timeout.
create or replace function drop_event_partition(p_number bigint) returns void language plpgsql as $$
begin
  execute format('drop table if exists %I', format('event_%s', p_number));
end $$;
