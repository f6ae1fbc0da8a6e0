-- Makes finished errands ready that were pushed while they were held. Returns the positions of those that the worker no longer held;
-- null: it held all.
--
-- Locks: as lock_errands.
create or replace function renew_errands(p_queue text, p_worker uuid, p_keys text[], p_leases integer[]) returns integer[]
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_held record;
begin
  select * into v_held from lock_errands(p_queue, p_worker, p_keys, p_leases);
  update errand
     set id = nextval('errand_seq'), unnamed_at = null, again = false, losses = 0, attempts = 0, reason = null
   where ctid = any (v_held.spots);
  return v_held.lost;
end $$;
