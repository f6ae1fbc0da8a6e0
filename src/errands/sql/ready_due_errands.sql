-- Makes errands ready whose time has come, at most p_most, the earliest first. Returns how many.
--
-- Locks: errand with skip locked.
create or replace function ready_due_errands(p_queue text, p_at timestamptz, p_most integer) returns integer language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_spots tid[] := array(
    select e.ctid
      from errand e
     where e.queue = p_queue and e.state = 's' and e.run_at <= p_at
     order by e.run_at
     limit p_most
       for update skip locked);
begin
  -- numbers are drawn in the order of the list, so in order of time
  update errand e
     set state = 'r', run_at = null, id = s.id
    from (select u.spot, nextval('errand_seq') as id from unnest(v_spots) as u (spot)) as s
   where e.ctid = s.spot;
  return cardinality(v_spots);
end $$;
