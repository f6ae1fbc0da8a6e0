-- Cancels a run. A queued run ends at once. A running one is marked, and its worker kills it. The pending retry of a finished
-- run is deleted. Returns 'cancelled', 'cancelling' or 'finished', and the owner of the execution that was told.
--
-- Locks: live, retry, inbox, gate by id, the event log.
create or replace function cancel_run(p_run uuid, p_actor text, p_at timestamptz, out outcome text, out owners uuid[])
language plpgsql as $$
declare
  v_run live%rowtype;
  v_node node_run%rowtype;
  v_done record; v_gates record; v_retry record;
begin
  select * into v_run from live where id = p_run for update;
  if not found then
    delete from retry where run_id = p_run returning * into v_retry;
    outcome := case when found then 'cancelled' else 'finished' end;
    if found then
      perform end_waits(
        array[(select job_id from task where id = v_retry.task_id)], array[v_retry.instant], 'scheduler', p_at);
      perform append_events(3, array['retry.cancelled'], array[p_run], p_actor, array[null::uuid], p_at, array[
        run_body((select job_id from task where id = v_retry.task_id),
                 v_retry.task_id, v_retry.instant, v_retry.attempt, v_retry.priority)]);
    end if;
    return;
  end if;
  if v_run.worker_id is not null then
    update live set cancel = true, cancel_reason = 'cancelled by ' || p_actor where id = p_run and not cancel;
    -- its end will be its worker's doing: who wished for it is on record here
    if found then
      select * into v_node from node_run where run_id = p_run;
      perform append_events(3, array['run.cancel_wished'], array[p_run], p_actor, array[null::uuid], p_at, array[
        run_body((select job_id from task where id = v_run.task_id), v_run.task_id, v_run.instant, v_run.attempt,
                 v_run.priority, v_node.execution_id, v_node.nid)]);
    end if;
    outcome := 'cancelling';
    return;
  end if;
  select * into v_done from cancel_queued(array[p_run], 'cancelled by ' || p_actor, p_at);
  select * into v_gates from work_gates(null, v_done.permits, v_done.jobs, v_done.instants, p_at);
  perform append_run_events(
    v_done.cancelled || v_gates.ended, v_done.bodies || v_gates.bodies, null, null, null, p_actor, p_at);
  outcome := 'cancelled';
  owners := v_done.owners;
end $$;
