-- Removes the holds of workers that name no errand any more. No errand ever gets a number again that another had before it, so nothing
-- can come back into such a hold.
--
-- Locks: errand_hold with skip locked.
create or replace function remove_ended_holds(p_workers uuid[]) returns void language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  delete from errand_hold
   where lease = any (array(
           select h.lease
             from errand_hold h
            where h.worker = any (p_workers)
              and not exists (
                select
                  from unnest(h.ids) as r (ids)
                 cross join lateral (
                   select from errand e
                    where e.queue = h.queue and e.state = 'r' and e.id >= lower(r.ids) and e.id < upper(r.ids)) as e)
              for update skip locked));
end $$;
