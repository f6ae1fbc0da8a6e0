-- Claims named runs, each for the worker that was offered it. A run is handed out only if it is still ready under the lease
-- that was offered: not taken, cancelled, parked or held back by a gate since.
--
-- p_wishes says for each run whose wish it is, from 0. p_lanes (an array of arrays), p_workers and p_incarnations have an
-- element for each wish. A wish only gets runs of its lanes.
--
-- p_runs may contain a run more than once. The first wish gets it. Runs that another transaction has locked are skipped:
-- most likely another claim is taking them. Runs of paused jobs are parked.
--
-- Locks: live by id with skip locked, then lease by worker, then as park_runs.
create or replace function accept_runs(
  p_runs uuid[], p_leases integer[], p_wishes integer[], p_lanes jsonb, p_workers uuid[], p_incarnations bigint[],
  p_until timestamptz, p_at timestamptz
) returns table (
  id uuid, task_id uuid, instant timestamptz, version integer, attempt integer, priority priority,
  lease integer, worker_id uuid, params json, node json, rank timestamptz
) language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_spots tid[]; v_tasks uuid[]; v_workers uuid[]; v_incarnations bigint[];
begin
  select array_agg(v.spot), array_agg(v.task_id), array_agg(p_workers[w.wish + 1]), array_agg(p_incarnations[w.wish + 1])
    into v_spots, v_tasks, v_workers, v_incarnations
    from (
      select distinct on (u.run, u.lease) u.run, u.lease, u.wish
        from unnest(p_runs, p_leases, p_wishes) with ordinality as u (run, lease, wish, n)
       order by u.run, u.lease, u.n
    ) as w
   cross join lateral (
     select live.ctid as spot, live.task_id
       from live
      where live.id = w.run and live.lease = w.lease and p_lanes -> w.wish ? live.lane
        and live.worker_id is null and not live.parked and live.gate is null
        for update skip locked
   ) as v;
  if v_spots is null then
    return;
  end if;
  return query
  select * from lease_runs(v_spots, v_tasks, v_workers, v_incarnations, p_until, p_at);
  perform park_runs(array(select k.id from task k where k.id = any (v_tasks) and k.paused), p_at);
end $$;
