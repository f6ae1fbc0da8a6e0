-- Turns retries that are due into runs of the next attempt. Removed tasks get none. Returns the number of runs.
--
-- Locks: retry with skip locked, gate by id, the event log.
create or replace function queue_retries(p_limit integer, p_at timestamptz) returns integer language plpgsql as $$
declare
  v_tasks uuid[]; v_instants timestamptz[]; v_attempts integer[]; v_priorities priority[]; v_causes uuid[];
  v_runs record; v_gates record;
begin
  with due as (
    delete from retry
     where run_id = any (array(
       select run_id from retry where due_at <= p_at order by due_at limit p_limit for update skip locked))
    returning *
  )
  select array_agg(d.task_id), array_agg(d.instant), array_agg(d.attempt), array_agg(d.priority), array_agg(d.run_id)
    into v_tasks, v_instants, v_attempts, v_priorities, v_causes
    from due d
    join task k on k.id = d.task_id and k.removed_at is null;
  select * into v_runs from queue_runs(v_tasks, v_instants, v_attempts, v_priorities, v_causes, p_at);
  select * into v_gates from work_gates(v_runs.gates, null, null, null, p_at);
  perform append_run_events(
    v_gates.ended, v_gates.bodies, v_runs.created, v_runs.causes, v_runs.bodies, 'scheduler', p_at);
  return coalesce(cardinality(v_runs.created), 0);
end $$;
