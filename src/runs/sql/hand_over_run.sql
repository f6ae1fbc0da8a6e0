-- Hands one locked run of a task to a worker: hand_over for a single run, in one short statement. Returns the run as an item of
-- the answer; null if its job is paused, or if another transaction has locked the lease of the worker.
--
-- Locks: lease with skip locked. The caller has locked the run.
create or replace function hand_over_run(
  p_spot tid, p_task uuid, p_worker uuid, p_incarnation bigint, p_until timestamptz, p_at timestamptz
) returns json language plpgsql as $$
declare
  v_run record;
begin
  with renewed as (
    update lease
       set until = greatest(until, p_until), incarnation = greatest(incarnation, p_incarnation)
     where ctid = (select w.ctid from lease w where w.worker_id = p_worker for no key update skip locked)
    returning worker_id
  )
  update live
     set worker_id = renewed.worker_id, incarnation = p_incarnation, lease = live.lease + 1, claimed_at = p_at, result = null
    from renewed, task k
   where live.ctid = p_spot and k.id = p_task and not k.paused
  returning live.id, live.task_id, live.instant, live.version, live.attempt, live.priority, live.lease, live.worker_id,
            true as fits, (select i.params from instant_params i where i.job_id = k.job_id and i.instant = live.instant)
       into v_run;
  return case when found then row_to_json(v_run) end;
end $$;
