-- Adds a partition of a million numbers to the event log.
--
-- The table is created first and attached afterwards. Attaching takes no lock that readers or writers of the log wait for.
create or replace function add_event_partition(p_number bigint) returns void language plpgsql as $$
declare
  v_name text := format('event_%s', p_number);
begin
  execute format('create table if not exists %I (like event including all)', v_name);
  execute format(
    'alter table event attach partition %I for values from (%s) to (%s)',
    v_name, p_number * 1000000, (p_number + 1) * 1000000);
end $$;
