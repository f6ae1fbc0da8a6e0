-- Makes scheduled errands ready now. Returns how many were scheduled.
--
-- Only scheduled errands have a time. A condition on the state would offer the planner the index of all scheduled ones.
--
-- Locks: errand by (queue, key).
create or replace function promote_errands(p_queue text, p_keys text[]) returns integer language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_spots tid[] := array(
    select e.spot
      from (select distinct u.key from unnest(p_keys) as u (key) order by u.key) as w
     cross join lateral (
       select errand.ctid as spot
         from errand
        where errand.queue = p_queue and errand.key = w.key and errand.run_at is not null
          for update
     ) as e);
  v_promoted integer;
begin
  update errand set state = 'r', run_at = null, id = nextval('errand_seq') where ctid = any (v_spots);
  get diagnostics v_promoted = row_count;
  return v_promoted;
end $$;
