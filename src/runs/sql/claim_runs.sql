-- Claims ready runs for the places of workers: the n-th run in order of rank gets the n-th place (see lease_runs).
--
-- If the job of a run was paused after the run was queued, the run and all others of its task are parked and the places go
-- to the next runs. A long queue of a paused job must not hide the runs behind it. Runs with a rank below p_floor are
-- ignored.
--
-- Locks: live with skip locked, then lease by worker, then as park_runs.
create or replace function claim_runs(
  p_lanes text[], p_workers uuid[], p_incarnations bigint[], p_until timestamptz, p_at timestamptz,
  p_floor timestamptz default '-infinity'
) returns table (
  id uuid, task_id uuid, instant timestamptz, version integer, attempt integer, priority priority,
  lease integer, worker_id uuid, params json, node json, rank timestamptz
) language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  v_workers uuid[] := p_workers;
  v_incarnations bigint[] := p_incarnations;
  v_spots tid[]; v_tasks uuid[];
  v_given integer;
begin
  loop
    select r.spots, r.tasks into v_spots, v_tasks from lock_ready_runs(p_lanes, cardinality(v_workers), p_floor) as r;
    exit when v_spots is null;
    return query
    select * from lease_runs(v_spots, v_tasks, v_workers, v_incarnations, p_until, p_at);
    get diagnostics v_given = row_count;
    exit when v_given = cardinality(v_spots);
    -- a run that was handed out is no longer where it was
    select array_agg(p.worker order by p.n), array_agg(p.incarnation order by p.n) into v_workers, v_incarnations
      from unnest(v_workers, v_incarnations) with ordinality as p (worker, incarnation, n)
     where p.n > cardinality(v_spots) or exists (select 1 from live where live.ctid = v_spots[p.n]);
    perform park_runs(array(select k.id from task k where k.id = any (v_tasks) and k.paused), p_at);
    exit when v_workers is null;
  end loop;
end $$;
