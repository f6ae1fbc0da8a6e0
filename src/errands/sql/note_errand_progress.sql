-- Forgets the losses of errands whose work has advanced. Returns the positions of those that the worker no longer
-- held; null: it held all.
--
-- Locks: as lock_errands.
create or replace function note_errand_progress(p_queue text, p_worker uuid, p_keys text[], p_leases integer[])
returns integer[] language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_held record;
begin
  select * into v_held from lock_errands(p_queue, p_worker, p_keys, p_leases);
  update errand set losses = 0 where ctid = any (v_held.spots) and losses > 0;
  return v_held.lost;
end $$;
