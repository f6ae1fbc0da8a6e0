-- Makes scheduled errands ready now. Returns how many were scheduled.
--
-- Locks: errand by (queue, key).
create or replace function promote_errands(p_queue text, p_keys text[]) returns integer language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_spots tid[] := array(
    select e.ctid
      from unnest(p_keys) as w (key)
      join errand e on e.queue = p_queue and e.key = w.key
     where e.state = 's'
     order by e.key
       for update of e);
  v_promoted integer;
begin
  update errand set state = 'r', run_at = null, id = nextval('errand_seq') where ctid = any (v_spots);
  get diagnostics v_promoted = row_count;
  return v_promoted;
end $$;
