-- Takes tasks out of the graph: deletes their edges, held tokens and retries, and cancels their queued runs. Running runs may
-- finish, or with p_kill are marked to be killed; returns the latter.
--
-- Locks: task, live by id, held by (task, instant), retry, gate by id, the event log. No token is locked.
create or replace function retire_tasks(p_tasks uuid[], p_kill boolean, p_reason text, p_actor text, p_at timestamptz)
returns table (id uuid, lease integer) language plpgsql as $$
#variable_conflict use_column
declare
  v_done record; v_gates record;
begin
  update task set paused = true, removed_at = coalesce(task.removed_at, p_at)
   where task.id = any (p_tasks);
  delete from trigger_edge where task_id = any (p_tasks);
  delete from task_edge where parent_id = any (p_tasks) or child_id = any (p_tasks);
  perform 1 from live where task_id = any (p_tasks) order by live.id for update;
  select * into v_done
    from cancel_queued(array(select live.id from live where task_id = any (p_tasks)), p_reason, p_at);
  update live set cancel = true, cancel_reason = coalesce(cancel_reason, p_reason)
   where p_kill and task_id = any (p_tasks) and worker_id is not null;
  perform 1 from held where task_id = any (p_tasks) order by task_id, instant for update;
  delete from held where task_id = any (p_tasks);
  delete from retry where task_id = any (p_tasks);
  select * into v_gates from work_gates(null, v_done.permits, v_done.jobs, v_done.instants, p_at);
  perform append_run_events(
    v_done.cancelled || v_gates.ended, v_done.bodies || v_gates.bodies, null, null, null, p_actor, p_at);
  return query
  select live.id, live.lease
    from live
   where live.task_id = any (p_tasks) and live.cancel;
end $$;
