-- Removes finished errands, unless they were pushed after they were taken. Returns the positions of those that the worker no longer held
-- (null: it held all), and of those that were pushed: the caller makes these ready with renew_errands.
--
-- A hold that loses all its errands goes, too. The beat removes the others once they are empty.
--
-- One pass in order of the keys, as in lock_errands. An errand that was pushed cannot be changed in a second pass, because a push
-- that is under way may have locked it and wait for one of those that are removed.
--
-- Locks: errand by (queue, key), then errand_hold.
create or replace function ack_errands(
  p_queue text, p_worker uuid, p_keys text[], p_leases integer[], out lost integer[], out pushed integer[]
) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off as $$
declare
  v_leases integer[] := array(select distinct u.lease from unnest(p_leases) as u (lease));
  -- all that is held under these leases
  v_ids int8multirange := (
    select range_agg(r.ids)
      from errand_hold h
     cross join lateral unnest(h.ids) as r (ids)
     where h.lease = any (v_leases) and h.worker = p_worker and h.queue = p_queue);
  v_removed integer[];
begin
  with gone as (
    delete from errand e
     using (select w.key, w.lease, w.n from unnest(p_keys, p_leases) with ordinality as w (key, lease, n) order by w.key) as h
     where e.queue = p_queue and e.key = h.key and e.state = 'r' and not e.again and e.id <@ v_ids
       and (cardinality(v_leases) = 1
            or exists (select from errand_hold o where o.lease = h.lease and o.worker = p_worker and o.queue = p_queue and e.id <@ o.ids))
    returning h.n
  )
  select array_agg(g.n::integer) into v_removed from gone g;
  if cardinality(v_removed) = cardinality(p_keys) then
    delete from errand_hold h
     where h.lease = any (v_leases) and h.worker = p_worker and h.queue = p_queue
       and (select sum(upper(r.ids) - lower(r.ids)) from unnest(h.ids) as r (ids))
           = (select count(*) from unnest(p_leases) as u (lease) where u.lease = h.lease);
    return;
  end if;
  select array_agg(h.n::integer) filter (where e.key is null), array_agg(h.n::integer) filter (where e.key is not null)
    into lost, pushed
    from (select w.key, w.lease, w.n from unnest(p_keys, p_leases) with ordinality as w (key, lease, n)) as h
    left join lateral (
      select e.key
        from errand e
       where e.queue = p_queue and e.key = h.key and e.state = 'r' and e.again
         and exists (select from errand_hold o where o.lease = h.lease and o.worker = p_worker and o.queue = p_queue and e.id <@ o.ids)
    ) as e on true
   where (h.n in (select unnest(v_removed))) is not true;
end $$;
