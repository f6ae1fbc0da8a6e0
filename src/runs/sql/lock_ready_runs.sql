-- Locks the first ready runs of the given lanes, in order of rank. Returns their places (ctid) and their tasks.
--
-- Runs that another transaction has locked are skipped. Runs with a rank below p_floor are ignored.
--
-- Locks: live with skip locked.
create or replace function lock_ready_runs(
  p_lanes text[], p_max integer, p_floor timestamptz, out spots tid[], out tasks uuid[]
) language plpgsql as $$
begin
  if cardinality(p_lanes) = 1 then
    select array_agg(r.spot), array_agg(r.task_id) into spots, tasks
      from (
        select live.ctid as spot, live.task_id
          from live
         where live.lane = p_lanes[1] and live.worker_id is null and not live.parked and live.gate is null
           and live.rank >= p_floor
         order by live.rank, live.id
         limit p_max
           for update skip locked
      ) as r;
    return;
  end if;
  select array_agg(c.spot), array_agg(c.task_id) into spots, tasks
    from (
      select r.spot, r.task_id
        from unnest(p_lanes) as l (lane)
       cross join lateral (
         select live.ctid as spot, live.task_id, live.rank, live.id
           from live
          where live.lane = l.lane and live.worker_id is null and not live.parked and live.gate is null
            and live.rank >= p_floor
          order by live.rank, live.id
          limit p_max
            for update skip locked
       ) as r
       order by r.rank, r.id
       limit p_max
    ) as c;
end $$;
