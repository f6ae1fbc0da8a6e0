-- Removes finished errands. Those that were pushed while they were held become ready instead. Returns the positions of those that the
-- worker no longer held; null: it held all.
--
-- Locks: as lock_errands.
create or replace function ack_errands(p_queue text, p_worker uuid, p_keys text[], p_leases integer[]) returns integer[]
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  v_held record;
  v_removed integer;
begin
  select * into v_held from lock_errands(p_queue, p_worker, p_keys, p_leases);
  delete from errand where ctid = any (v_held.spots) and not again;
  get diagnostics v_removed = row_count;
  if v_removed < cardinality(v_held.spots) then
    update errand
       set state = 'r', id = nextval('errand_seq'), worker = null, unnamed_at = null, again = false, losses = 0, attempts = 0,
           reason = null
     where ctid = any (v_held.spots) and again;
  end if;
  return v_held.lost;
end $$;
