-- Makes poisoned errands ready, and forgets their losses. Returns the keys of those that were poisoned.
--
-- Locks: errand by (queue, key).
create or replace function revive_errands(p_queue text, p_keys text[]) returns text[] language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_spots tid[] := array(
    select e.spot
      from (select distinct u.key from unnest(p_keys) as u (key) order by u.key) as w
     cross join lateral (
       select errand.ctid as spot
         from errand
        where errand.queue = p_queue and errand.key = w.key and errand.state = 'x'
          for update
     ) as e);
  v_revived text[];
begin
  with revived as (
    update errand
       set state = 'r', id = nextval('errand_seq'), losses = 0, reason = null
     where ctid = any (v_spots)
    returning key
  )
  select array_agg(key order by key) into v_revived from revived;
  return v_revived;
end $$;
