-- The set of functions that the database has. The functions are in src/*/sql. Install and upgrade replace them as a set.

alter table installation
  -- checksum of the set
  add column functions_checksum text,
  -- name, parameters and result of each function: the next set drops those that it does not have in this form
  add column functions_declared text[] not null default '{}';

-- 0.1.0 created its functions in migrations. Their names, for the first set to drop.
update installation set functions_declared = regexp_split_to_array(trim($$
  above_low_water activate_tokens add_activity add_event_partition append_events append_run_events
  backfill_range begin_migration cancel_backfill_runs cancel_queued cancel_run claim_runs clear_tokens
  count_tokens delete_jobs drop_event_partition end_body end_instants end_of_time end_waits finish_migration
  finish_runs fire_backfill fire_triggers forget_instants forget_runs forget_tokens give_up_runs head_start
  hold_full_tokens holds_drain lock_runs lost_runs move_triggers new_id open_event_log overlap_instants
  park_runs pass_instants pass_runs permits_of queue_retries queue_runs raise_low_water record_migration
  regate_tasks release_tokens renew_leases retention_age retire_strays retire_tasks return_runs ripe_backfills
  run_body set_limits settle_backfill status sweep_firings sweep_gates sweep_instants sweep_lowered sweep_tokens
  take_back_runs tally_backfill version_order work_gates
$$, E' \n'), '\s+');
