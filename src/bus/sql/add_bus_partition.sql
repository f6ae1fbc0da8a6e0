-- Adds a partition of four million numbers to the bus log.
--
-- The table is created first and attached afterwards. Attaching takes no lock that readers or writers of the log wait for.
create or replace function add_bus_partition(p_number bigint) returns void language plpgsql as $$
declare
  v_name text := format('bus_event_%s', p_number);
begin
  execute format('create table if not exists %I (like bus_event including all)', v_name);
  execute format(
    'alter table bus_event attach partition %I for values from (%s) to (%s)',
    v_name, p_number * 4000000, (p_number + 1) * 4000000);
end $$;
