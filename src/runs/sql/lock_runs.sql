-- Locks those of the given runs that are held under the given lease, by the given worker if one is given. Returns their
-- places (ctid) and their numbers in the list.
--
-- Rows are locked by id. When the same runs were reported in two orders at once, 19 of 20 rounds deadlocked. Each row is
-- looked up by itself: the planner may believe that the index of held runs is empty, and scan it for each row. Therefore the
-- condition uses claimed_at, which is set exactly while the run has a worker and has no index.
--
-- Locks: live by id.
create or replace function lock_runs(
  p_runs uuid[], p_leases integer[], p_workers uuid[], out spots tid[], out numbers integer[]
) language plpgsql as $$
begin
  select array_agg(v.spot), array_agg(r.n) into spots, numbers
    from (select * from unnest(p_runs, p_leases, p_workers) with ordinality as r (id, lease, worker, n) order by id) as r
   cross join lateral (
     select live.ctid as spot
       from live
      where live.id = r.id and live.lease = r.lease and live.claimed_at is not null
        and live.worker_id = coalesce(r.worker, live.worker_id)
        for update
   ) as v;
end $$;
