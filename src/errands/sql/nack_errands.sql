-- Schedules errands again, and forgets their losses. One with a reason counts another attempt. Returns the positions of those that
-- the worker no longer held; null: it held all.
--
-- Locks: as lock_errands.
create or replace function nack_errands(
  p_queue text, p_worker uuid, p_keys text[], p_leases integer[], p_run_at timestamptz[], p_reasons text[]
) returns integer[] language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_held record;
begin
  select * into v_held from lock_errands(p_queue, p_worker, p_keys, p_leases);
  update errand e
     set state = 's', run_at = p_run_at[h.n], unnamed_at = null, again = false, losses = 0,
         attempts = case when p_reasons[h.n] is null then e.attempts else e.attempts + 1 end,
         reason = coalesce(p_reasons[h.n], e.reason)
    from unnest(v_held.spots, v_held.positions) as h (spot, n)
   where e.ctid = h.spot;
  return v_held.lost;
end $$;
