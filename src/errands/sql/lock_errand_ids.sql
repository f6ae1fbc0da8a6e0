-- Locks the errands that are ready or pending under these numbers, and returns their places (ctid). It leaves out those that another
-- transaction has locked, or has given another number.
--
-- Locks: errand with skip locked.
create or replace function lock_errand_ids(p_ids bigint[]) returns tid[] language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  return array(
    select e.ctid
      from errand e
     where e.queue in ('main', 'aux') and e.state = 'r' and e.id = any (p_ids)
       for update skip locked);
end $$;
