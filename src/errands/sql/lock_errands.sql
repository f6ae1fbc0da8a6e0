-- Locks the errands that a worker holds under these leases. Returns their places (ctid) and their positions in the arrays of the
-- caller, in order of the keys, and the positions of those that the worker does not hold; null: it holds all.
--
-- Each key is looked up in the primary key, in a subquery of its own that the planner cannot reorder: a join would begin with the
-- whole table whenever the planner believes that it is empty.
--
-- Locks: errand by (queue, key).
create or replace function lock_errands(
  p_queue text, p_worker uuid, p_keys text[], p_leases integer[],
  out spots tid[], out positions integer[], out lost integer[]
) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off as $$
begin
  select array_agg(l.spot), array_agg(l.n::integer) into spots, positions
    from (
      select e.spot, h.n
        from (
          select w.key, w.lease, w.n from unnest(p_keys, p_leases) with ordinality as w (key, lease, n) order by w.key
        ) as h
       cross join lateral (
         select errand.ctid as spot
           from errand
          where errand.queue = p_queue and errand.key = h.key and errand.state = 'r'
            and exists (
              select
                from errand_hold o
               where o.lease = h.lease and o.worker = p_worker and o.queue = p_queue and errand.id <@ o.ids)
            for update
       ) as e
    ) as l;
  if coalesce(cardinality(spots), 0) < cardinality(p_keys) then
    lost := array(
      select h.n from generate_series(1, cardinality(p_keys)) as h (n) where (h.n in (select unnest(positions))) is not true);
  end if;
end $$;
