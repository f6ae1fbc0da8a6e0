-- Drops a partition of the bus log. Readers and writers of the log wait for it.
--
-- Locks: bus_event and the partition, exclusively.
create or replace function drop_bus_partition(p_number bigint) returns void language plpgsql as $$
begin
  execute format('drop table if exists %I', format('bus_event_%s', p_number));
end $$;
