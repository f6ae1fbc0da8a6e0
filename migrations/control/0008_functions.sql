-- The set of functions that the database has. The functions are in src/*/sql. Install and upgrade replace them as a set.

alter table installation
  -- checksum of the set
  add column functions_checksum text,
  -- name, parameters and result of each function: the next set drops those that it does not have in this form
  add column functions_declared text[] not null default '{}';

-- 0.1.0 created its functions in migrations. Their names, for the first set to drop.
update installation set functions_declared = regexp_split_to_array(trim($$
  add_event_partition append_events assert_epoch drop_event_partition open_event_log
$$, E' \n'), '\s+');
