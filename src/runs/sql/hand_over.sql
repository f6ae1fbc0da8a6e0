-- Hands ready runs out within the commit that applies reports. As in a claim, the n-th run in order of rank gets the n-th
-- place, so a hand-over never overtakes the queue.
--
-- p_lanes, p_workers, p_incarnations and p_free have an element for each set of lanes, itself an array as text: the lanes, and for
-- each worker its id, its incarnation and its number of places. Workers get runs in turns. An id for each of 64 places takes
-- longer to read than a statement takes.
--
-- Returns an object for each set of lanes: {"runs": [...], "exhausted": boolean}, the latter if nothing that is ready in these lanes
-- was left. As after a claim, runs that other transactions have locked count as gone if there were more places than runs. Runs
-- beyond p_max_bytes of params come without params and with "fits": false; the caller returns them to the queue.
--
-- It never waits for a lock, because the caller holds locks that come later in the lock order: a worker whose lease another
-- transaction has locked gets nothing, and neither does a worker without a lease. Runs of paused jobs stay where they are; the next claim parks them.
--
-- Locks: live, then lease, both with skip locked.
create or replace function hand_over(
  p_lanes text[], p_workers text[], p_incarnations text[], p_free text[], p_until timestamptz, p_at timestamptz, p_max_bytes integer
) returns json language plpgsql as $$
declare
  v_lanes text[]; v_workers uuid[]; v_incarnations bigint[]; v_leased uuid[];
  v_free integer[]; v_each integer; v_places integer;
  v_ready record; v_run json; v_runs json; v_number integer; v_exhausted boolean;
  v_bytes bigint := 0;
  v_answers json[] := '{}';
begin
  for i in 1..cardinality(p_lanes) loop
    v_lanes := p_lanes[i]::text[];
    v_workers := p_workers[i]::uuid[];
    v_incarnations := p_incarnations[i]::bigint[];
    v_free := p_free[i]::integer[];
    v_places := 0;
    foreach v_each in array v_free loop
      v_places := v_places + v_each;
    end loop;
    v_ready := lock_ready_runs(v_lanes, v_places, '-infinity');
    if v_ready.spots is null then
      v_answers := v_answers || json '{"runs": [], "exhausted": true}';
      continue;
    end if;
    v_exhausted := cardinality(v_ready.spots) < v_places;
    if cardinality(v_ready.spots) = 1 and v_ready.tasks[1] is not null and v_bytes < p_max_bytes then
      v_run := hand_over_run(v_ready.spots[1], v_ready.tasks[1], v_workers[1], v_incarnations[1], p_until, p_at);
      v_runs := case when v_run is null then '[]' else json_build_array(v_run) end;
      v_number := json_array_length(v_runs);
      v_bytes := v_bytes + coalesce(octet_length(v_run::text), 0);
    else
      select array_agg(p.worker order by p.turn, p.n), array_agg(p.incarnation order by p.turn, p.n)
        into v_workers, v_incarnations
        from (
          select w.worker, w.incarnation, w.n, t.turn
            from unnest(v_workers, v_incarnations, v_free) with ordinality as w (worker, incarnation, free, n)
           cross join generate_series(1, w.free) as t (turn)
        ) as p;
      with renewed as (
        update lease
           set until = greatest(until, p_until),
               incarnation = greatest(incarnation, v_incarnations[array_position(v_workers, worker_id)])
         where ctid = any (array(
           select w.ctid
             from lease w
            where w.worker_id = any (v_workers[:cardinality(v_ready.spots)])
              for no key update skip locked))
        returning worker_id
      )
      select array_agg(worker_id) into v_leased from renewed;
      if not v_leased @> v_workers[:cardinality(v_ready.spots)] or v_leased is null then
        select coalesce(array_agg(p.worker order by p.n), '{}'), array_agg(p.incarnation order by p.n)
          into v_workers, v_incarnations
          from unnest(v_workers, v_incarnations) with ordinality as p (worker, incarnation, n)
         where p.worker = any (v_leased);
      end if;
      select coalesce(json_agg(h), '[]'), count(*), v_bytes + coalesce(sum(h.bytes), 0) into v_runs, v_number, v_bytes
        from (
          select r.id, r.task_id, r.instant, r.version, r.attempt, r.priority, r.lease, r.worker_id, r.bytes, r.fits,
                 case when r.fits then r.params end as params, case when r.fits then r.node end as node
            from (
              select l.*, m.bytes,
                     v_bytes + coalesce(sum(m.bytes) over (rows between unbounded preceding and 1 preceding), 0)
                       < p_max_bytes as fits
                from lease_runs(
                       v_ready.spots[:cardinality(v_workers)], v_ready.tasks[:cardinality(v_workers)],
                       v_workers, v_incarnations, null, p_at) as l
               cross join lateral (
                 select coalesce(octet_length(l.params::text), 0) + coalesce(octet_length(l.node::text), 0) as bytes
               ) as m
            ) as r
        ) as h;
    end if;
    if v_number < cardinality(v_ready.spots) then
      v_exhausted := false;
    elsif not v_exhausted then
      v_exhausted := not exists (
        select 1
          from live
         where live.lane = any (v_lanes) and live.worker_id is null and not live.parked and live.gate is null);
    end if;
    v_answers := v_answers || json_build_object('runs', v_runs, 'exhausted', v_exhausted);
  end loop;
  return to_json(v_answers);
end $$;
