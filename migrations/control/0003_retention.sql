-- Retention of the event log, the same in the control database and in every tenant.

-- Drops a partition of the event log. It asks for a moment without readers and writers: who calls sets lock_timeout.
create function drop_event_partition(p_number bigint) returns void language plpgsql as $$
begin
  execute format('drop table if exists %I', format('event_%s', p_number));
end $$;
